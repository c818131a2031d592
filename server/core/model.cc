#include "server/core/model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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
      leases_(num_ranks()),
      gate_(num_ranks()),
      operations_(num_ranks()),
      emas_(layout_),
      launched_ema_steps_(layout_.emas().size()),
      undo_valid_(memory_.size()),
      exposed_(memory_.size()),
      deadline_watch_([this] { WatchDeadlines(); }) {
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < memory_.size(); ++i) ranks_.emplace_back(layout_.gather_slots());
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

absl::Status Model::CheckRoom(Rank rank, Sequence sequence, uint64_t num_calls) const {
  const uint64_t ahead = sequence.value() - gate_.next(rank).value();
  if (ahead < CollectiveGate::kWindow && ahead + num_calls <= gate_.Room(rank)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "call.sequence: %d is more than %d calls ahead of the slowest rank of epoch %d; rank %d is at %d itself",
      sequence.value(), CollectiveGate::kWindow, epoch_.value(), rank.value(), gate_.next(rank).value()));
}

void Model::TakeTurn(const CallContext& context, uint64_t num_calls, Turn turn, Callbacks& after) {
  const absl::StatusOr<Rank> rank = CheckInEpoch(context);
  if (!rank.ok()) return turn(rank, after);
  const Sequence next = gate_.next(*rank);
  std::map<Sequence, EarlyCall>& early = state(*rank).early_calls;
  const auto used = [&](Sequence sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return absl::FailedPreconditionError(
        absl::StrFormat("call.sequence: %d has been used by rank %d in epoch %d; its next one is %d", sequence.value(),
                        rank->value(), epoch_.value(), gate_.next(*rank).value()));
  };
  if (context.sequence < next || early.contains(context.sequence)) return turn(used(context.sequence), after);
  if (absl::Status status = CheckRoom(*rank, context.sequence, num_calls); !status.ok()) return turn(status, after);
  if (context.sequence > next) {
    early.emplace(context.sequence, EarlyCall{.call = context.id,
                                              .num_calls = num_calls,
                                              .deadline = absl::Now() + options_.collective_timeout,
                                              .turn = std::move(turn)});
    return;
  }
  turn(rank, after);
  // A turn may end the epoch, and with it all that waited; or take numbers that others wait for.
  while (!early.empty() && early.begin()->first <= gate_.next(*rank)) {
    const Sequence sequence = early.begin()->first;
    EarlyCall call = std::move(early.extract(early.begin()).mapped());
    sequence == gate_.next(*rank) ? call.turn(rank, after) : call.turn(used(sequence), after);
  }
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
  const bool waits = std::any_of(waiting_begins_.begin(), waiting_begins_.end(),
                                 [rank](const WaitingBegin& begin) { return begin.rank == rank; });
  if (!waits && !ranks_[static_cast<size_t>(rank.value())].updating.has_value()) return absl::OkStatus();
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
  return &operations_.Open(sequence, key);
}

void Model::EndEpoch(AbortCause cause, const absl::Status& reason, Callbacks& after) {
  const Epoch ended = epoch_;
  epoch_ = epoch_.Next();
  last_end_ = reason;
  gate_.Reset();
  for (Operation& operation : operations_.CloseUnlaunched()) {
    Settle(operation, reason, after);
    // Behind what has been launched, as the words never fall.
    queue_.Push([this, kind = operation.key.kind, slots = operation.slots, completion = operation.completion] {
      SignalSlots(kind, slots, VoidValue(completion)).IgnoreError();
    });
  }
  for (WaitingBegin& begin : waiting_begins_) {
    after.Add([done = std::move(begin.done), reason]() mutable { done(reason); });
  }
  waiting_begins_.clear();
  for (RankState& rank : ranks_) {
    rank.reduced_units.clear();
    for (auto& [sequence, early] : std::exchange(rank.early_calls, {})) early.turn(reason, after);
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

ModelPosition Model::PositionOn(Rank rank) const {
  ModelPosition position = Position();
  for (const GatherRing::Slot& slot : ranks_[static_cast<size_t>(rank.value())].ring.slots()) {
    if (slot.unit.has_value() && slot.ready) position.resident_units.push_back(layout_.unit(*slot.unit).name);
  }
  return position;
}

void Model::PublishPosition() {
  for (const std::unique_ptr<RankMemory>& memory : memory_) {
    memory->PublishPosition(epoch_, step_, initialized_, torn_);
  }
  observer_.PositionChanged(layout_.name(), Position());
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

}  // namespace holdfast
