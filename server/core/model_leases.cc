// Attach, Rejoin, and the ways a lease ends, of a Model.
#include <utility>

#include "absl/strings/str_format.h"
#include "server/core/model.h"

namespace holdfast {

absl::StatusOr<Attachment> Model::Attach(Rank rank, int32_t pid, std::shared_ptr<LeaseListener> listener) {
  absl::MutexLock lock(&mu_);
  if (absl::Status status = leases_.Attach(rank, pid, std::move(listener)); !status.ok()) return status;
  // A worker that comes back to a mapping it never gave up has stopped writing for the old lease.
  if (state(rank).updating.has_value()) RollBack(rank);
  state(rank).joined = epoch_;
  state(rank).ring.ReleaseAll();
  PublishLeases();
  observer_.LeaseTaken(layout_.name(), rank, pid);
  Attachment attachment = {.lease = leases_.lease(rank).id,
                           .memory_token = leases_.lease(rank).token,
                           .position = Position(),
                           .arenas = memory(rank).Exported()};
  for (const GatherRing::Slot& slot : state(rank).ring.slots()) {
    if (slot.unit.has_value() && slot.ready) {
      attachment.position.resident_units.push_back(layout_.unit(*slot.unit).name);
    }
  }
  return attachment;
}

void Model::EndLease(LeaseId lease, std::string_view reason) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<Rank> rank = leases_.Find(lease);
  if (rank.ok()) LoseLease(*rank, reason, after);
}

void Model::LoseLease(Rank rank, std::string_view reason, Callbacks& after) {
  const Lease ended = leases_.End(rank);
  const absl::Status status =
      absl::AbortedError(absl::StrFormat("rank %d (process %d) %s at step %d of model '%s', epoch %d", rank.value(),
                                         ended.pid, reason, step_.value(), layout_.name(), epoch_.value()));
  EndEpoch(AbortCause::kLeaseLost, status, after);
  // Without a mapping there is nobody left who could write.
  if (leases_.lease(rank).state == LeaseState::kFree && state(rank).updating.has_value()) RollBack(rank);
  PublishLeases();
  observer_.LeaseEnded(layout_.name(), rank, ended.pid, reason);
  after.Add([ended, status] { ended.listener->OnRevoked(status); });
}

absl::StatusOr<std::vector<UniqueFd>> Model::ClaimMemory(std::string_view token, int32_t pid) {
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<Rank> rank = leases_.FindToken(token);
  if (!rank.ok()) return rank.status();
  absl::StatusOr<std::vector<UniqueFd>> descriptors = memory(*rank).Descriptors();
  if (!descriptors.ok()) return descriptors.status();
  if (absl::Status status = leases_.ClaimMemory(*rank, pid); !status.ok()) return status;
  return descriptors;
}

void Model::MemoryReturned(std::string_view token, std::string_view reason) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<Rank> rank = leases_.FindToken(token);
  if (!rank.ok()) return;
  if (leases_.lease(*rank).state == LeaseState::kHeld) LoseLease(*rank, reason, after);
  leases_.MemoryReturned(*rank);
  if (state(*rank).updating.has_value()) RollBack(*rank);
  PublishLeases();
}

bool Model::HasToken(std::string_view token) const {
  absl::MutexLock lock(&mu_);
  return leases_.FindToken(token).ok();
}

void Model::Announce(const GroupEvent& event) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  for (int32_t i = 0; i < num_ranks(); ++i) {
    const std::shared_ptr<LeaseListener> listener = leases_.lease(Rank(i)).listener;
    if (listener == nullptr) continue;
    GroupEvent current = event;
    current.epoch = epoch_;
    after.Add([listener, current] { listener->OnEvent(current); });
  }
}

int32_t Model::NumLeases() const {
  absl::MutexLock lock(&mu_);
  return leases_.NumIn(LeaseState::kHeld);
}

bool Model::AwaitNoLeases(absl::Time deadline) const {
  const auto none_held = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return leases_.NumIn(LeaseState::kHeld) == 0; };
  absl::MutexLock lock(&mu_);
  return mu_.AwaitWithDeadline(absl::Condition(&none_held), deadline);
}

void Model::Rejoin(const CallContext& context, Done<ModelPosition> done) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<Rank> rank = CheckLease(context);
  if (!rank.ok()) {
    after.Add([done = std::move(done), status = rank.status()]() mutable { done(status); });
    return;
  }
  const RankState& rejoining = state(*rank);
  if (rejoining.joined == epoch_ &&
      (gate_.next(*rank) > Sequence(0) || rejoining.updating.has_value() || !rejoining.early_calls.empty())) {
    EndEpoch(AbortCause::kRejoin,
             absl::AbortedError(absl::StrFormat(
                 "rank %d (process %d) gave up its step at step %d of model '%s', epoch %d", rank->value(),
                 leases_.lease(*rank).pid, step_.value(), layout_.name(), epoch_.value())),
             after);
  }
  if (state(*rank).updating.has_value()) RollBack(*rank);
  state(*rank).joined = epoch_;
  state(*rank).ring.ReleaseAll();
  // The answer follows what is queued, so that the worker finds its shards rolled back.
  queue_->Push([done = std::move(done), position = Position()]() mutable { done(std::move(position)); });
}

void Model::PublishLeases() {
  observer_.LeasesChanged(layout_.name(), leases_.NumIn(LeaseState::kFree), leases_.NumIn(LeaseState::kHeld),
                          leases_.NumIn(LeaseState::kMapped));
}

}  // namespace holdfast
