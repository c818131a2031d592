// BeginUpdate, CommitUpdate and EmaStep of a Model.
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/core/model.h"

namespace holdfast {

absl::Status Model::CheckBegin(Rank rank, UpdateKind kind) const {
  if (absl::Status status = CheckNotUpdating(rank); !status.ok()) return status;
  if (kind == UpdateKind::kOptimizer) return CheckReadable();
  if (initialized_ && !torn_) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "kind: model '%s' has parameters already, of step %d; go on from them, or drop the model to start afresh",
        layout_.name(), step_.value()));
  }
  return absl::OkStatus();
}

void Model::BeginUpdate(const CallContext& context, UpdateKind kind, Done<Nothing> done) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  TakeTurn(
      context, 1,
      [this, context, kind, done = std::move(done)](const absl::StatusOr<Rank>& rank, Callbacks& after) mutable {
        mu_.AssertHeld();
        const absl::Status status = rank.ok() ? StartBegin(context, *rank, kind, done, after) : rank.status();
        if (!status.ok()) after.Add([done = std::move(done), status]() mutable { done(status); });
      },
      after);
}

absl::Status Model::StartBegin(const CallContext& context, Rank rank, UpdateKind kind, Done<Nothing>& done,
                               Callbacks& after) {
  if (absl::Status status = CheckStep(context.step); !status.ok()) return status;
  if (absl::Status status = CheckBegin(rank, kind); !status.ok()) return status;
  bool complete = false;
  const absl::StatusOr<Operation*> arrived =
      Arrive(rank, context.sequence, {.kind = OperationKind::kBeginUpdate, .variant = kind == UpdateKind::kInitialize},
             after, complete);
  if (!arrived.ok()) return arrived.status();
  waiting_begins_.push_back({.rank = rank,
                             .call = context.id,
                             .sequence = context.sequence,
                             .kind = kind,
                             .deadline = absl::Now() + options_.collective_timeout,
                             .done = std::move(done)});
  GrantBegins();
  return absl::OkStatus();
}

void Model::GrantBegins() {
  for (auto begin = waiting_begins_.begin(); begin != waiting_begins_.end();) {
    // Earlier operations read this rank's shards, or will.
    if (!operations_.AllEndedBefore(begin->sequence)) {
      ++begin;
      continue;
    }
    Grant(std::move(*begin));
    begin = waiting_begins_.erase(begin);
  }
}

void Model::Grant(WaitingBegin begin) {
  state(begin.rank).updating = begin.kind;
  queue_.Push([this, rank = begin.rank, kind = begin.kind, done = std::move(begin.done)]() mutable {
    const auto index = static_cast<size_t>(rank.value());
    absl::Status status;
    // First values replace nothing that could be restored.
    if (memory(rank).has_undo() && kind == UpdateKind::kOptimizer) {
      Device& device = memory(rank).device();
      status = device.Copy(stream(rank), memory(rank).UndoSave());
      status.Update(device.Synchronize(stream(rank)));
      undo_valid_[index] = status.ok();
    }
    exposed_[index] = !undo_valid_[index];
    status.ok() ? done(Nothing{}) : done(status);
  });
}

void Model::RollBack(Rank rank) {
  state(rank).updating.reset();
  queue_.Push([this, rank] {
    const auto index = static_cast<size_t>(rank.value());
    exposed_[index] = false;
    if (!undo_valid_[index]) return;
    undo_valid_[index] = false;
    Device& device = memory(rank).device();
    absl::Status status = device.Copy(stream(rank), memory(rank).UndoRestore());
    status.Update(device.Synchronize(stream(rank)));
    if (status.ok()) return;
    Callbacks after;
    absl::MutexLock lock(&mu_);
    torn_ = true;
    EndEpoch(AbortCause::kDeviceError, status, after);
  });
}

void Model::CommitUpdate(const CallContext& context, bool ema_step, Done<Step> done) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<Rank> holder = CheckLease(context);
  if (holder.ok() && !state(*holder).updating.has_value() && context.step.Next() == step_) {
    // Asked again, for instance because the first answer was lost. As the first, the answer follows the work.
    queue_.Push([done = std::move(done), step = step_]() mutable { done(step); });
    return;
  }
  TakeTurn(
      context, 1,
      [this, context, ema_step, done = std::move(done)](const absl::StatusOr<Rank>& rank, Callbacks& after) mutable {
        mu_.AssertHeld();
        const absl::Status status = rank.ok() ? StartCommit(context, *rank, ema_step, done, after) : rank.status();
        if (!status.ok()) after.Add([done = std::move(done), status]() mutable { done(status); });
      },
      after);
}

absl::Status Model::StartCommit(const CallContext& context, Rank rank, bool ema_step, Done<Step>& done,
                                Callbacks& after) {
  if (absl::Status status = CheckStep(context.step); !status.ok()) return status;
  const std::optional<UpdateKind> updating = state(rank).updating;
  if (!updating.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("rank %d has no update to commit; call BeginUpdate first", rank.value()));
  }
  const bool initialize = *updating == UpdateKind::kInitialize;
  bool complete = false;
  const absl::StatusOr<Operation*> operation =
      Arrive(rank, context.sequence,
             {.kind = OperationKind::kCommitUpdate, .variant = initialize, .ema_step = ema_step}, after, complete);
  if (!operation.ok()) return operation.status();
  (*operation)
      ->waiters.push_back({.rank = rank,
                           .call = context.id,
                           .deadline = absl::Now() + options_.collective_timeout,
                           .done = [done = std::move(done), step = initialize ? step_ : step_.Next()](
                                       const absl::Status& ended) mutable { ended.ok() ? done(step) : done(ended); }});
  if (complete) Commit(**operation);
  return absl::OkStatus();
}

void Model::Commit(Operation& operation) {
  operation.launched = true;
  const OperationKey key = operation.key;
  if (!key.variant) step_ = step_.Next();
  initialized_ = true;
  torn_ = false;
  last_commit_ = absl::Now();
  for (RankState& rank : ranks_) {
    rank.updating.reset();
    rank.reduced_units.clear();
    rank.ring.EmptyAll();
  }
  if (key.variant) {
    emas_.CopiedIn(step_);
  } else if (key.ema_step) {
    for (size_t ema = 0; ema < layout_.emas().size(); ++ema) emas_.MovedTo(ema, step_);
  }
  PublishPosition();
  queue_.Push([this, key, step = step_, completion = operation.completion] {
    absl::Status status = RunCommit(key, step);
    status.Update(SynchronizeAll());
    Finish(completion, status);
  });
}

absl::Status Model::RunCommit(const OperationKey& key, Step step) {
  undo_valid_.assign(undo_valid_.size(), false);
  exposed_.assign(exposed_.size(), false);
  launched_step_ = step;
  if (key.variant) {
    launched_ema_steps_.assign(launched_ema_steps_.size(), step);
    absl::Status status;
    for (size_t i = 0; i < memory_.size(); ++i) {
      status.Update(memory_[i]->device().Copy(*streams_[i], EmaCopyInTasks(layout_, *memory_[i])));
    }
    return status;
  }
  if (!key.ema_step) return absl::OkStatus();
  std::vector<size_t> all(layout_.emas().size());
  std::iota(all.begin(), all.end(), size_t{0});
  return RunEma(all, step);
}

std::byte* Model::CommittedShard(const RankMemory& memory, const FlatParameter& flat) const {
  std::byte* live = memory.Shard(flat);
  return undo_valid_[static_cast<size_t>(memory.rank().value())] ? memory.UndoOf(v1::MEMORY_PURPOSE_PARAMETERS, live)
                                                                 : live;
}

absl::Status Model::RunEma(absl::Span<const size_t> emas, Step step) {
  const absl::Time start = absl::Now();
  const ShardSource source = [this](const RankMemory& memory, const FlatParameter& flat) {
    return CommittedShard(memory, flat);
  };
  absl::Status status;
  int64_t size_bytes = 0;
  for (size_t i = 0; i < memory_.size(); ++i) {
    std::vector<EmaTask> tasks;
    for (const size_t ema : emas) {
      for (EmaTask& task : EmaMoveTasks(layout_, *memory_[i], ema, step, source)) {
        size_bytes += task.num_elements * SizeOf(task.ema_dtype);
        tasks.push_back(task);
      }
    }
    status.Update(memory_[i]->device().Ema(*streams_[i], tasks));
  }
  for (const size_t ema : emas) launched_ema_steps_[ema] = step;
  if (status.ok()) observer_.EmaDone(size_bytes, absl::Now() - start);
  return status;
}

void Model::EmaStep(const CallContext& context, absl::Span<const std::string> emas, Done<std::vector<EmaResult>> done) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const absl::Status status = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::StatusOr<Rank> rank = CheckLease(context);
    if (!rank.ok()) return rank.status();
    const absl::StatusOr<std::vector<size_t>> selected = emas_.Select(emas);
    if (!selected.ok()) return selected.status();
    if (absl::Status status = CheckReadable(); !status.ok()) return status;
    std::vector<size_t> due;
    for (const size_t ema : *selected) {
      if (emas_.positions()[ema].step < context.step) due.push_back(ema);
    }
    if (!due.empty()) {
      if (absl::Status status = CheckStep(context.step); !status.ok()) return status;
      for (const RankState& peer : ranks_) {
        const Rank updating(static_cast<int32_t>(&peer - ranks_.data()));
        if (!peer.updating.has_value() || memory(updating).has_undo()) continue;
        return absl::FailedPreconditionError(
            absl::StrFormat("rank %d is writing its shards of step %d, of which there is no undo copy; call EmaStep "
                            "before any BeginUpdate",
                            updating.value(), step_.value() + 1));
      }
    }
    std::vector<EmaResult> results;
    for (const size_t ema : *selected) results.push_back(emas_.MovedTo(ema, context.step));
    if (!due.empty()) PublishPosition();
    // What another call has started is ahead in the queue, so this answer means that the copies are there.
    queue_.Push([this, due, step = context.step, results, done = std::move(done)]() mutable {
      absl::Status status = due.empty() ? absl::OkStatus() : RunEma(due, step);
      status.Update(SynchronizeAll());
      status.ok() ? done(std::move(results)) : done(status);
    });
    return absl::OkStatus();
  }();
  if (!status.ok()) after.Add([done = std::move(done), status]() mutable { done(status); });
}

}  // namespace holdfast
