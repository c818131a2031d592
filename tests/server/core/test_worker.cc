#include "tests/server/core/test_worker.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace holdfast {

absl::StatusOr<std::unique_ptr<TestWorker>> TestWorker::Attach(Model& model, Rank rank, int32_t pid) {
  auto worker = std::unique_ptr<TestWorker>(new TestWorker(model, rank, pid));
  absl::StatusOr<Attachment> attachment = model.Attach(rank, pid, worker->listener_);
  if (!attachment.ok()) return attachment.status();
  worker->attachment_ = *std::move(attachment);
  worker->epoch = worker->attachment_.position.epoch;
  worker->step = worker->attachment_.position.step;
  if (absl::Status status = worker->MapArenas(); !status.ok()) return status;
  return worker;
}

absl::Status TestWorker::MapArenas() {
  absl::StatusOr<std::vector<UniqueFd>> descriptors = model_.ClaimMemory(attachment_.memory_token, pid_);
  if (!descriptors.ok()) return descriptors.status();
  if (descriptors->size() != attachment_.arenas.size()) return absl::InternalError("a descriptor an arena is expected");
  for (size_t i = 0; i < descriptors->size(); ++i) {
    const ExportedArena& arena = attachment_.arenas[i];
    const auto size_bytes = static_cast<size_t>(arena.size_bytes);
    void* mapping = ::mmap(nullptr, size_bytes, arena.writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                           (*descriptors)[i].get(), 0);
    if (mapping == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
    arenas_[arena.purpose] = {static_cast<std::byte*>(mapping), size_bytes};
  }
  return absl::OkStatus();
}

TestWorker::~TestWorker() {
  for (const auto& [purpose, arena] : arenas_) ::munmap(arena.data(), arena.size());
}

CallContext TestWorker::NextCall(uint64_t num_calls) {
  const CallContext context = {.id = CallId((uint64_t{static_cast<uint32_t>(pid_)} << 32) + ++num_calls_),
                               .lease = attachment_.lease,
                               .epoch = epoch,
                               .step = step,
                               .sequence = Sequence(sequence)};
  sequence += num_calls;
  return context;
}

Pending<GatherResult> TestWorker::Gather(const std::string& unit, const std::vector<std::string>& prefetch,
                                         const std::vector<std::string>& release) {
  Pending<GatherResult> pending;
  model_.Gather({.context = NextCall(1 + prefetch.size()), .unit = unit, .prefetch = prefetch, .release = release},
                pending.Callback());
  return pending;
}

absl::Status TestWorker::Release(const std::vector<std::string>& units) { return model_.Release(NextCall(0), units); }

Pending<Nothing> TestWorker::ReduceScatter(const std::string& unit, uint32_t gradient_slot, bool accumulate) {
  Pending<Nothing> pending;
  model_.ReduceScatter({.context = NextCall(), .unit = unit, .gradient_slot = gradient_slot, .accumulate = accumulate},
                       pending.Callback());
  return pending;
}

Pending<Nothing> TestWorker::BeginUpdate(UpdateKind kind) {
  Pending<Nothing> pending;
  model_.BeginUpdate(NextCall(), kind, pending.Callback());
  return pending;
}

Pending<Step> TestWorker::CommitUpdate(bool ema_step) {
  Pending<Step> pending;
  model_.CommitUpdate(NextCall(), ema_step, pending.Callback());
  return pending;
}

Pending<std::vector<EmaResult>> TestWorker::EmaStep(const std::vector<std::string>& emas) {
  Pending<std::vector<EmaResult>> pending;
  model_.EmaStep(NextCall(0), emas, pending.Callback());
  return pending;
}

absl::StatusOr<ModelPosition> TestWorker::Rejoin() {
  Pending<ModelPosition> pending;
  model_.Rejoin(NextCall(0), pending.Callback());
  absl::StatusOr<ModelPosition> position = pending.Wait();
  if (position.ok()) {
    epoch = position->epoch;
    step = position->step;
    sequence = 0;
  }
  return position;
}

void TestWorker::Disconnect() { model_.EndLease(attachment_.lease, "lost its connection"); }

void TestWorker::Die() {
  Disconnect();
  model_.MemoryReturned(attachment_.memory_token, "died");
}

const ArenaHeader& TestWorker::Header(v1::MemoryPurpose purpose) const {
  return *reinterpret_cast<const ArenaHeader*>(arenas_.at(purpose).data());
}

absl::Span<std::byte> TestWorker::Data(v1::MemoryPurpose purpose) const {
  return arenas_.at(purpose).subspan(kPageBytes);
}

absl::Span<std::byte> TestWorker::At(v1::MemoryPurpose purpose, int64_t offset, int64_t size_bytes) const {
  return Data(purpose).subspan(static_cast<size_t>(offset), static_cast<size_t>(size_bytes));
}

absl::Span<std::byte> TestWorker::ShardAt(v1::MemoryPurpose purpose, int64_t offset, const FlatParameter& flat,
                                          DType dtype) const {
  return At(purpose, offset, flat.shard_elements * SizeOf(dtype));
}

absl::Span<std::byte> TestWorker::Shard(const FlatParameter& flat) const {
  return ShardAt(v1::MEMORY_PURPOSE_PARAMETERS, flat.shard_offset, flat, flat.master_dtype);
}

absl::Span<std::byte> TestWorker::Gradient(const FlatParameter& flat) const {
  return ShardAt(v1::MEMORY_PURPOSE_GRADIENTS, flat.gradient_offset, flat, flat.master_dtype);
}

absl::Span<std::byte> TestWorker::State(const FlatParameter& flat, size_t state) const {
  return ShardAt(v1::MEMORY_PURPOSE_OPTIMIZER_STATE, flat.state_offsets[state], flat,
                 model_.layout().StateDType(flat, state));
}

absl::Span<std::byte> TestWorker::Buffer(const BufferLayout& buffer) const {
  return At(v1::MEMORY_PURPOSE_BUFFERS, buffer.offset, buffer.num_elements * SizeOf(buffer.dtype));
}

absl::Span<const std::byte> TestWorker::Ema(const FlatParameter& flat, size_t ema) const {
  return ShardAt(v1::MEMORY_PURPOSE_EMA, flat.ema_offsets[ema], flat, model_.layout().emas()[ema].dtype);
}

absl::Span<const std::byte> TestWorker::GatherSlot(int32_t slot, const FlatParameter& flat) const {
  return At(v1::MEMORY_PURPOSE_GATHER_SLOTS, slot * model_.layout().gather_slot_bytes() + flat.gather_offset,
            flat.padded_elements(model_.layout().mesh().num_shard) * SizeOf(flat.param_dtype));
}

absl::Span<std::byte> TestWorker::GradientSlot(int32_t slot, const FlatParameter& flat) const {
  return At(v1::MEMORY_PURPOSE_GRADIENT_SLOTS, slot * model_.layout().gradient_slot_bytes() + flat.gradient_slot_offset,
            flat.padded_elements(model_.layout().mesh().num_shard) * SizeOf(flat.reduce_dtype));
}

}  // namespace holdfast
