#include "server/core/model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<Model>> Model::Create(ModelLayout layout, absl::Span<Device* const> devices,
                                                     std::unique_ptr<Collectives> collectives, Observer& observer,
                                                     const ModelOptions& options) {
  auto owned_layout = std::make_unique<const ModelLayout>(std::move(layout));
  std::vector<std::unique_ptr<RankMemory>> memory;
  std::vector<std::unique_ptr<Stream>> streams;
  for (size_t i = 0; i < devices.size(); ++i) {
    absl::StatusOr<std::unique_ptr<RankMemory>> of_rank =
        RankMemory::Create(*owned_layout, Rank(static_cast<int32_t>(i)), *devices[i]);
    if (!of_rank.ok()) return of_rank.status();
    absl::StatusOr<std::unique_ptr<Stream>> stream = devices[i]->CreateStream();
    if (!stream.ok()) return stream.status();
    memory.push_back(*std::move(of_rank));
    streams.push_back(*std::move(stream));
  }
  auto model = std::unique_ptr<Model>(new Model(std::move(owned_layout), std::move(memory), std::move(streams),
                                                std::move(collectives), observer, options));
  absl::MutexLock lock(&model->mu_);
  model->PublishPosition();
  model->PublishLeases();
  return model;
}

Model::Model(std::unique_ptr<const ModelLayout> layout, std::vector<std::unique_ptr<RankMemory>> memory,
             std::vector<std::unique_ptr<Stream>> streams, std::unique_ptr<Collectives> collectives, Observer& observer,
             const ModelOptions& options)
    : layout_owner_(std::move(layout)),
      layout_(*layout_owner_),
      memory_(std::move(memory)),
      streams_(std::move(streams)),
      collectives_(std::move(collectives)),
      observer_(observer),
      options_(options),
      ranks_(memory_.size(), RankState(layout_.gather_slots())),
      leases_(num_ranks()),
      gate_(num_ranks()),
      operations_(num_ranks()),
      emas_(layout_),
      launched_ema_steps_(layout_.emas().size()),
      undo_valid_(memory_.size()),
      exposed_(memory_.size()),
      deadline_watch_([this] { WatchDeadlines(); }) {
  queue_.emplace();
}

Model::~Model() {
  const absl::Status dropped = absl::AbortedError(absl::StrFormat("model '%s' was dropped", layout_.name()));
  {
    Callbacks after;
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    EndEpoch(AbortCause::kDropped, dropped, after);
    for (int32_t i = 0; i < num_ranks(); ++i) {
      const Lease lease = leases_.End(Rank(i));
      if (lease.state == LeaseState::kHeld) after.Add([lease, dropped] { lease.listener->OnRevoked(dropped); });
    }
  }
  deadline_watch_.join();
  queue_.reset();
}

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
  if (state(*rank).joined == epoch_ && (gate_.next(*rank) > Sequence(0) || state(*rank).updating.has_value())) {
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

absl::StatusOr<Rank> Model::CheckLease(const CallContext& context) const { return leases_.Find(context.lease); }

absl::StatusOr<Rank> Model::CheckInEpoch(const CallContext& context) const {
  const absl::StatusOr<Rank> rank = CheckLease(context);
  if (!rank.ok()) return rank;
  if (context.epoch == epoch_ && ranks_[static_cast<size_t>(rank->value())].joined == epoch_) return rank;
  if (context.epoch > epoch_ || context.epoch == Epoch(0)) {
    return absl::InvalidArgumentError(absl::StrFormat("call.epoch: %d was never an epoch of model '%s'; it is at %d",
                                                      context.epoch.value(), layout_.name(), epoch_.value()));
  }
  if (context.epoch == epoch_) {
    return absl::FailedPreconditionError(
        absl::StrFormat("rank %d has not entered epoch %d; call Rejoin", rank->value(), epoch_.value()));
  }
  if (context.epoch.Next() == epoch_) return last_end_;
  return absl::AbortedError(absl::StrFormat("epoch %d of model '%s' has ended; it is at %d; call Rejoin",
                                            context.epoch.value(), layout_.name(), epoch_.value()));
}

absl::Status Model::CheckStep(Step step) const {
  if (step == step_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("call.step: %d, but model '%s' is at step %d", step.value(), layout_.name(), step_.value()));
}

absl::StatusOr<Rank> Model::CheckCollective(const CallContext& context, uint64_t num_calls) const {
  const absl::StatusOr<Rank> rank = CheckInEpoch(context);
  if (!rank.ok()) return rank;
  if (absl::Status status = CheckStep(context.step); !status.ok()) return status;
  if (context.sequence != gate_.next(*rank)) {
    return absl::FailedPreconditionError(absl::StrFormat("call.sequence: %d, but rank %d is at %d in epoch %d",
                                                         context.sequence.value(), rank->value(),
                                                         gate_.next(*rank).value(), epoch_.value()));
  }
  if (gate_.Room(*rank) < num_calls) {
    return absl::ResourceExhaustedError(absl::StrFormat("rank %d is %d calls ahead of the slowest rank; wait for it",
                                                        rank->value(), CollectiveGate::kWindow));
  }
  return rank;
}

absl::Status Model::CheckReadable() const {
  if (torn_) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "model '%s' is torn: a worker died in an update without an undo copy; initialise or load it", layout_.name()));
  }
  if (!initialized_) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "model '%s' has no parameters yet: initialise it (BeginUpdate with UPDATE_KIND_INITIALIZE, write "
        "the shards, CommitUpdate)",
        layout_.name()));
  }
  return absl::OkStatus();
}

absl::Status Model::CheckNotUpdating(Rank rank) const {
  if (!ranks_[static_cast<size_t>(rank.value())].updating.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("rank %d is between BeginUpdate and CommitUpdate; commit first", rank.value()));
}

std::string Model::Describe(const OperationKey& key) const {
  switch (key.kind) {
    case OperationKind::kGather:
      return absl::StrCat("Gather of unit '", layout_.unit(key.unit).name, "'");
    case OperationKind::kReduceScatter:
      return absl::StrCat("ReduceScatter of unit '", layout_.unit(key.unit).name, "'",
                          key.variant ? " with accumulate" : "");
    case OperationKind::kBeginUpdate:
      return key.variant ? "BeginUpdate to initialise" : "BeginUpdate";
    case OperationKind::kCommitUpdate:
      return absl::StrCat("CommitUpdate", key.variant ? " to initialise" : "", key.ema_step ? " with ema_step" : "");
  }
  return "an unknown call";
}

absl::StatusOr<Operation*> Model::Arrive(Rank rank, Sequence sequence, const OperationKey& key, Callbacks& after,
                                         bool& complete) {
  const CollectiveGate::Arrival arrival = gate_.Arrive(rank, sequence, key);
  if (arrival.outcome == CollectiveGate::Outcome::kDesync) {
    absl::Status desync = absl::FailedPreconditionError(absl::StrFormat(
        "ranks disagree at sequence %d of epoch %d of model '%s': rank %d asks for %s, rank %d for %s; every rank must "
        "make the same calls in the same order; call Rejoin and start the step again",
        sequence.value(), epoch_.value(), layout_.name(), arrival.other.value(), Describe(arrival.other_key),
        rank.value(), Describe(key)));
    EndEpoch(AbortCause::kDesync, desync, after);
    return desync;
  }
  complete = arrival.outcome == CollectiveGate::Outcome::kComplete;
  if (key.kind == OperationKind::kBeginUpdate) return nullptr;
  return &operations_.Open(sequence, key, absl::Now() + options_.collective_timeout);
}

void Model::EndEpoch(AbortCause cause, const absl::Status& reason, Callbacks& after) {
  const Epoch ended = epoch_;
  epoch_ = epoch_.Next();
  last_end_ = reason;
  gate_.Reset();
  for (Operation& operation : operations_.CloseUnlaunched()) {
    Settle(operation, reason, after);
    // Behind what has been launched, as the words never fall.
    queue_->Push([this, kind = operation.key.kind, slots = operation.slots, completion = operation.completion] {
      SignalSlots(kind, slots, VoidValue(completion)).IgnoreError();
    });
  }
  for (WaitingBegin& begin : waiting_begins_) {
    after.Add([done = std::move(begin.done), reason]() mutable { done(reason); });
  }
  waiting_begins_.clear();
  for (RankState& rank : ranks_) {
    rank.reduced_units.clear();
    // A writer in place leaves shards of no one step behind; an undo copy waits until its writer has stopped.
    if (rank.updating.has_value() && !memory(Rank(static_cast<int32_t>(&rank - ranks_.data()))).has_undo())
      torn_ = true;
  }
  PublishPosition();
  observer_.EpochEnded(layout_.name(), ended, cause, std::string(reason.message()));
  for (int32_t i = 0; i < num_ranks(); ++i) {
    const std::shared_ptr<LeaseListener> listener = leases_.lease(Rank(i)).listener;
    if (listener == nullptr) continue;
    after.Add([listener, event = GroupEvent{.epoch = epoch_, .reason = std::string(reason.message())}] {
      listener->OnEvent(event);
    });
  }
}

ModelPosition Model::Position() const {
  return {.epoch = epoch_, .step = step_, .initialized = initialized_, .torn = torn_, .emas = emas_.positions()};
}

void Model::PublishPosition() {
  for (const std::unique_ptr<RankMemory>& memory : memory_) {
    memory->PublishPosition(epoch_, step_, initialized_, torn_);
  }
  observer_.PositionChanged(layout_.name(), Position());
}

void Model::PublishLeases() {
  observer_.LeasesChanged(layout_.name(), leases_.NumIn(LeaseState::kFree), leases_.NumIn(LeaseState::kHeld),
                          leases_.NumIn(LeaseState::kMapped));
}

ModelPosition Model::position() const {
  absl::MutexLock lock(&mu_);
  return Position();
}

std::optional<absl::Time> Model::last_commit() const {
  absl::MutexLock lock(&mu_);
  return last_commit_;
}

std::vector<RankReport> Model::ranks() const {
  absl::MutexLock lock(&mu_);
  std::vector<RankReport> reports;
  for (int32_t i = 0; i < num_ranks(); ++i) {
    const Rank rank(i);
    const Lease& lease = leases_.lease(rank);
    reports.push_back({.rank = rank,
                       .lease = lease.state,
                       .pid = lease.pid,
                       .sequence = gate_.next(rank),
                       .updating = ranks_[static_cast<size_t>(i)].updating.has_value()});
  }
  return reports;
}

void Model::CancelCall(CallId call, const absl::Status& reason) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  if (std::optional<Operation::Waiter> waiter = operations_.TakeWaiter(call)) {
    after.Add([done = std::move(waiter->done), reason]() mutable { done(reason); });
    return;
  }
  const auto begin = std::find_if(waiting_begins_.begin(), waiting_begins_.end(),
                                  [call](const WaitingBegin& waiting) { return waiting.call == call; });
  if (begin == waiting_begins_.end()) return;
  after.Add([done = std::move(begin->done), reason]() mutable { done(reason); });
  waiting_begins_.erase(begin);
}

absl::Time Model::NextDeadline() const {
  absl::Time next = operations_.NextDeadline();
  for (const WaitingBegin& begin : waiting_begins_) next = std::min(next, begin.deadline);
  return next;
}

void Model::WatchDeadlines() {
  while (true) {
    Callbacks after;
    absl::MutexLock lock(&mu_);
    const absl::Time next = NextDeadline();
    const auto changed = [this, next]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return stopping_ || NextDeadline() < next; };
    mu_.AwaitWithDeadline(absl::Condition(&changed), next);
    if (stopping_) return;
    ExpireCalls(absl::Now(), after);
  }
}

void Model::ExpireCalls(absl::Time now, Callbacks& after) {
  const auto late = [this](Sequence sequence) ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    const std::string ranks = absl::StrJoin(gate_.Missing(sequence), ", ", [this](std::string* out, Rank rank) {
      mu_.AssertReaderHeld();
      absl::StrAppend(out, "rank ", rank.value());
      const Lease& lease = leases_.lease(rank);
      lease.state == LeaseState::kHeld
          ? absl::StrAppend(out, " (process ", lease.pid, ", at ", gate_.next(rank).value(), ")")
          : absl::StrAppend(out, " (no worker)");
    });
    return absl::DeadlineExceededError(absl::StrFormat("waited %s at sequence %d of epoch %d of model '%s' for %s",
                                                       absl::FormatDuration(options_.collective_timeout),
                                                       sequence.value(), epoch_.value(), layout_.name(), ranks));
  };
  for (Operation* operation : operations_.Expired(now)) {
    const absl::Status status = late(operation->sequence);
    for (Operation::Waiter& waiter : operation->waiters) {
      after.Add([done = std::move(waiter.done), status]() mutable { done(status); });
    }
    operation->waiters.clear();
  }
  for (auto begin = waiting_begins_.begin(); begin != waiting_begins_.end();) {
    if (begin->deadline > now) {
      ++begin;
      continue;
    }
    const Sequence before(begin->sequence.value() == 0 ? 0 : begin->sequence.value() - 1);
    after.Add([done = std::move(begin->done), status = late(before)]() mutable { done(status); });
    begin = waiting_begins_.erase(begin);
  }
}

}  // namespace holdfast
