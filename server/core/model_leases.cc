// Attach, Rejoin, and the ways a lease ends, of a Model.
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
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
  return Attachment{.lease = leases_.lease(rank).id,
                    .memory_token = leases_.lease(rank).token,
                    .position = PositionOn(rank),
                    .arenas = memory(rank).Exported()};
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
  absl::StatusOr<std::vector<UniqueFd>> descriptors;
  absl::Notification rolled_back;
  {
    absl::MutexLock lock(&mu_);
    const absl::StatusOr<Rank> rank = leases_.FindToken(token);
    if (!rank.ok()) return rank.status();
    descriptors = memory(*rank).Descriptors();
    if (!descriptors.ok()) return descriptors.status();
    if (absl::Status status = leases_.ClaimMemory(*rank, token, pid); !status.ok()) return status;
    queue_.Push([&rolled_back] { rolled_back.Notify(); });
  }
  // What is queued ends by itself; the worker must not see what the one before it left half-written.
  rolled_back.WaitForNotification();
  return descriptors;
}

void Model::MemoryReturned(std::string_view token, std::string_view reason) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<Rank> rank = leases_.FindToken(token);
  if (!rank.ok()) return;
  const Lease& lease = leases_.lease(*rank);
  if (lease.state == LeaseState::kHeld && lease.token == token) LoseLease(*rank, reason, after);
  leases_.MemoryReturned(*rank, token);
  if (lease.state == LeaseState::kFree && state(*rank).updating.has_value()) RollBack(*rank);
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
  queue_.Push([done = std::move(done), position = PositionOn(*rank)]() mutable { done(std::move(position)); });
}

void Model::PublishLeases() {
  observer_.LeasesChanged(layout_.name(), leases_.NumIn(LeaseState::kFree), leases_.NumIn(LeaseState::kHeld),
                          leases_.NumIn(LeaseState::kMapped));
}

}  // namespace holdfast
