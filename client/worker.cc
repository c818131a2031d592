#include "client/worker.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "client/initial_values.h"
#include "client/session.h"

namespace holdfast {
namespace {

GatheredUnit UnitOf(const std::shared_ptr<const MappedMemory>& memory, const GatheredSlot& slot) {
  return GatheredUnit(memory, slot.unit, slot.slot, slot.hit);
}

// A session's slot as tensors.
class GatheredUnitSource final : public FutureSource<GatheredUnit> {
 public:
  GatheredUnitSource(std::shared_ptr<const MappedMemory> memory, Future<GatheredSlot> slot)
      : memory_(std::move(memory)), slot_(std::move(slot)) {}

  std::optional<absl::StatusOr<GatheredUnit>> Await(absl::Time deadline) override {
    std::optional<absl::StatusOr<GatheredSlot>> slot = slot_.WaitUntil(deadline);
    if (!slot.has_value()) return std::nullopt;
    if (!slot->ok()) return absl::StatusOr<GatheredUnit>(slot->status());
    return UnitOf(memory_, **slot);
  }

 private:
  const std::shared_ptr<const MappedMemory> memory_;
  const Future<GatheredSlot> slot_;
};

}  // namespace

Worker::Worker(std::unique_ptr<Session> session)
    : session_(std::move(session)), shards_(MakeShards(session_->memory())) {}

Worker::~Worker() = default;

const std::string& Worker::model() const { return session_->model(); }
Rank Worker::rank() const { return session_->rank(); }
const ModelLayout& Worker::layout() const { return session_->layout(); }
const v1::ModelState& Worker::state() const { return session_->state(); }
Step Worker::step() const { return session_->step(); }
absl::Status Worker::status() const { return session_->status(); }
bool Worker::draining() const { return session_->draining(); }

absl::StatusOr<GatheredUnit> Worker::Gather(UnitIndex unit, absl::Span<const UnitIndex> prefetch) {
  absl::StatusOr<GatheredSlot> slot = session_->Gather(unit, prefetch).Wait();
  if (!slot.ok()) return slot.status();
  return UnitOf(session_->memory(), *slot);
}

absl::StatusOr<GatheredUnit> Worker::Gather(std::string_view unit, absl::Span<const std::string> prefetch) {
  absl::StatusOr<UnitIndex> index = layout().FindUnit(unit);
  if (!index.ok()) return index.status();
  std::vector<UnitIndex> prefetch_indices;
  for (const std::string& name : prefetch) {
    absl::StatusOr<UnitIndex> other = layout().FindUnit(name);
    if (!other.ok()) return other.status();
    prefetch_indices.push_back(*other);
  }
  return Gather(*index, prefetch_indices);
}

Future<GatheredUnit> Worker::GatherAsync(UnitIndex unit, absl::Span<const UnitIndex> prefetch) {
  return Future<GatheredUnit>(
      std::make_shared<GatheredUnitSource>(session_->memory(), session_->Gather(unit, prefetch)));
}

absl::Status Worker::Release(UnitIndex unit) { return session_->Release(unit); }

absl::Status Worker::Release(std::string_view unit) {
  absl::StatusOr<UnitIndex> index = layout().FindUnit(unit);
  if (!index.ok()) return index.status();
  return Release(*index);
}

absl::Status Worker::FlushReleases() { return session_->FlushReleases(); }

absl::StatusOr<GradientSlot> Worker::AcquireGradient(UnitIndex unit) {
  absl::StatusOr<GradientClaim> claim = session_->ClaimGradient(unit);
  if (!claim.ok()) return claim.status();
  return GradientSlot(session_->memory(), *std::move(claim));
}

absl::StatusOr<GradientSlot> Worker::AcquireGradient(std::string_view unit) {
  absl::StatusOr<UnitIndex> index = layout().FindUnit(unit);
  if (!index.ok()) return index.status();
  return AcquireGradient(*index);
}

Future<void> Worker::ReduceScatter(GradientSlot&& gradient, bool accumulate) {
  return session_->ReduceScatter(std::move(gradient).TakeClaim(), accumulate);
}

absl::Status Worker::BeginUpdate(v1::UpdateKind kind) { return session_->BeginUpdate(kind); }

absl::StatusOr<Step> Worker::CommitUpdate(bool ema_step) { return session_->CommitUpdate(ema_step); }

absl::StatusOr<std::vector<v1::EmaStepResult>> Worker::EmaStep(absl::Span<const std::string> names) {
  return session_->EmaStep(names);
}

absl::Status Worker::Initialize(const absl::flat_hash_map<std::string, at::Tensor>& values) {
  if (absl::Status status = CheckInitialValues(layout(), values); !status.ok()) {
    return Annotate(status, absl::StrCat("rank ", rank().value(), " of '", model(), "': Initialize"));
  }
  return Initialize([&values](std::string_view name) -> absl::StatusOr<at::Tensor> {
    return values.find(std::string(name))->second;
  });
}

absl::Status Worker::Initialize(absl::FunctionRef<absl::StatusOr<at::Tensor>(std::string_view name)> value) {
  if (absl::Status status = session_->BeginUpdate(v1::UPDATE_KIND_INITIALIZE); !status.ok()) return status;
  absl::Status copied = CopyInitialValues(layout(), rank(), shards_, value);
  if (!copied.ok()) {
    copied = Annotate(copied, absl::StrCat("rank ", rank().value(), " of '", model(), "': Initialize"));
    session_->Fail(copied);
    return copied;
  }
  return session_->CommitUpdate(/*ema_step=*/false).status();
}

absl::StatusOr<v1::ModelState> Worker::Rejoin() { return session_->Rejoin(); }

}  // namespace holdfast
