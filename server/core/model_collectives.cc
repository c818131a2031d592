// Gather, Release and ReduceScatter of a Model.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/core/model.h"

namespace holdfast {
namespace {

absl::Status NoSlotFree(const ModelLayout& layout, const GatherRing& ring, size_t needed) {
  const std::string held = absl::StrJoin(ring.slots(), ", ", [&](std::string* out, const GatherRing::Slot& slot) {
    absl::StrAppend(out, "'", slot.unit.has_value() ? layout.unit(*slot.unit).name : "", "'");
  });
  return absl::ResourceExhaustedError(
      absl::StrFormat("%d gather slots are needed, %d are free: the %d slots hold %s; release some, prefetch fewer, or "
                      "register the model with more gather_slots",
                      needed, ring.NumAvailable(), ring.slots().size(), held));
}

}  // namespace

absl::StatusOr<std::vector<Model::PlannedGather>> Model::PlanGather(const GatherCall& call,
                                                                    const RankState& rank) const {
  GatherRing ring = rank.ring;
  for (const std::string& name : call.release) {
    const absl::StatusOr<UnitIndex> unit = layout_.FindUnit(name);
    if (!unit.ok()) return unit.status();
    ring.Release(*unit);
  }
  std::vector<std::string> names = {call.unit};
  names.insert(names.end(), call.prefetch.begin(), call.prefetch.end());
  std::vector<PlannedGather> planned;
  absl::flat_hash_set<UnitIndex> seen;
  size_t num_misses = 0;
  for (const std::string& name : names) {
    const absl::StatusOr<UnitIndex> unit = layout_.FindUnit(name);
    if (!unit.ok()) return unit.status();
    if (!seen.insert(*unit).second) {
      return absl::InvalidArgumentError(absl::StrFormat("prefetch: unit '%s' is named twice in one call", name));
    }
    const std::optional<int32_t> slot = ring.Find(*unit);
    slot.has_value() ? ring.Use(*slot) : void(++num_misses);
    planned.push_back({.unit = *unit, .resident_slot = slot});
  }
  if (num_misses > static_cast<size_t>(ring.NumAvailable())) return NoSlotFree(layout_, ring, num_misses);
  return planned;
}

void Model::Gather(GatherCall call, Done<GatherResult> done) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const CallContext context = call.context;
  const uint64_t num_calls = 1 + call.prefetch.size();
  TakeTurn(
      context, num_calls,
      [this, call = std::move(call), done = std::move(done)](const absl::StatusOr<Rank>& rank,
                                                             Callbacks& after) mutable {
        mu_.AssertHeld();
        const absl::Status status = rank.ok() ? StartGathers(call, *rank, done, after) : rank.status();
        if (!status.ok()) after.Add([done = std::move(done), status]() mutable { done(status); });
      },
      after);
}

absl::Status Model::StartGathers(const GatherCall& call, Rank rank, Done<GatherResult>& done, Callbacks& after) {
  if (absl::Status status = CheckStep(call.context.step); !status.ok()) return status;
  if (absl::Status status = CheckReadable(); !status.ok()) return status;
  if (absl::Status status = CheckNotUpdating(rank); !status.ok()) return status;
  const absl::StatusOr<std::vector<PlannedGather>> planned = PlanGather(call, state(rank));
  if (!planned.ok()) return planned.status();

  for (const std::string& name : call.release) state(rank).ring.Release(*layout_.FindUnit(name));
  // What is resident is marked first, so that no slot taken for another unit is one of these.
  for (const PlannedGather& gather : *planned) {
    if (gather.resident_slot.has_value()) state(rank).ring.Use(*gather.resident_slot);
  }
  GatherResult result;
  Sequence sequence = call.context.sequence;
  for (const PlannedGather& gather : *planned) {
    const absl::StatusOr<GatherTicket> ticket = StartGather(rank, sequence, gather, after);
    if (!ticket.ok()) return ticket.status();
    &gather == &planned->front() ? void(result.unit = *ticket) : result.prefetch.push_back(*ticket);
    sequence = sequence.Next();
  }
  // The unit may have been on its way since an earlier prefetch.
  if (Operation* filling = operations_.Find(result.unit.completion)) {
    filling->waiters.push_back({.rank = rank,
                                .call = call.context.id,
                                .deadline = absl::Now() + options_.collective_timeout,
                                .done = [done = std::move(done), result](const absl::Status& ended) mutable {
                                  ended.ok() ? done(std::move(result)) : done(ended);
                                }});
  } else {
    after.Add([done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
  }
  return absl::OkStatus();
}

absl::StatusOr<GatherTicket> Model::StartGather(Rank rank, Sequence sequence, const PlannedGather& planned,
                                                Callbacks& after) {
  bool complete = false;
  const absl::StatusOr<Operation*> operation =
      Arrive(rank, sequence, {.kind = OperationKind::kGather, .unit = planned.unit}, after, complete);
  if (!operation.ok()) return operation.status();
  GatherRing& ring = state(rank).ring;
  const bool hit = planned.resident_slot.has_value();
  const int32_t slot = hit ? *planned.resident_slot : ring.Acquire(planned.unit, (*operation)->completion);
  if (!hit) (*operation)->slots[static_cast<size_t>(rank.value())] = slot;
  observer_.Gathered(hit);
  const GatherTicket ticket = {
      .unit = planned.unit, .slot = slot, .completion = ring.slots()[static_cast<size_t>(slot)].completion, .hit = hit};
  if (complete) Launch(**operation);
  return ticket;
}

absl::Status Model::Release(const CallContext& context, absl::Span<const std::string> units) {
  absl::MutexLock lock(&mu_);
  const absl::StatusOr<Rank> rank = CheckInEpoch(context);
  if (!rank.ok()) return rank.status();
  for (const std::string& name : units) {
    if (const absl::StatusOr<UnitIndex> unit = layout_.FindUnit(name); !unit.ok()) return unit.status();
  }
  // One that was overtaken by a commit names slots that the commit freed, and that may be in use again.
  if (context.step < step_) return absl::OkStatus();
  if (absl::Status status = CheckStep(context.step); !status.ok()) return status;
  for (const std::string& name : units) state(*rank).ring.Release(*layout_.FindUnit(name));
  return absl::OkStatus();
}

absl::StatusOr<UnitIndex> Model::CheckReduceScatter(const ReduceScatterCall& call, const RankState& rank) const {
  const absl::StatusOr<UnitIndex> unit = layout_.FindUnit(call.unit);
  if (!unit.ok()) return unit;
  const std::vector<FlatParameter>& flats = layout_.unit(*unit).flat_parameters;
  if (std::none_of(flats.begin(), flats.end(), [](const FlatParameter& flat) { return flat.trainable; })) {
    return absl::InvalidArgumentError(absl::StrFormat("unit: '%s' has no trainable parameter", call.unit));
  }
  if (call.gradient_slot >= static_cast<uint32_t>(layout_.gradient_slots())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("gradient_slot: %d; slots are 0 to %d", call.gradient_slot, layout_.gradient_slots() - 1));
  }
  if (rank.busy_gradient_slots.contains(call.gradient_slot)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "gradient_slot: %d is still being reduced; wait for that call or use another slot", call.gradient_slot));
  }
  if (call.accumulate && !rank.reduced_units.contains(*unit)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "accumulate: unit '%s' has no gradient of step %d to add to; reduce it once without accumulate first",
        call.unit, step_.value()));
  }
  return unit;
}

void Model::ReduceScatter(ReduceScatterCall call, Done<Nothing> done) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  const CallContext context = call.context;
  TakeTurn(
      context, 1,
      [this, call = std::move(call), done = std::move(done)](const absl::StatusOr<Rank>& rank,
                                                             Callbacks& after) mutable {
        mu_.AssertHeld();
        const absl::Status status = rank.ok() ? StartReduceScatter(call, *rank, done, after) : rank.status();
        if (!status.ok()) after.Add([done = std::move(done), status]() mutable { done(status); });
      },
      after);
}

absl::Status Model::StartReduceScatter(const ReduceScatterCall& call, Rank rank, Done<Nothing>& done,
                                       Callbacks& after) {
  if (absl::Status status = CheckStep(call.context.step); !status.ok()) return status;
  if (absl::Status status = CheckReadable(); !status.ok()) return status;
  if (absl::Status status = CheckNotUpdating(rank); !status.ok()) return status;
  const absl::StatusOr<UnitIndex> unit = CheckReduceScatter(call, state(rank));
  if (!unit.ok()) return unit.status();
  bool complete = false;
  const absl::StatusOr<Operation*> operation =
      Arrive(rank, call.context.sequence,
             {.kind = OperationKind::kReduceScatter, .unit = *unit, .variant = call.accumulate}, after, complete);
  if (!operation.ok()) return operation.status();
  state(rank).busy_gradient_slots.insert(call.gradient_slot);
  state(rank).reduced_units.insert(*unit);
  (*operation)->slots[static_cast<size_t>(rank.value())] = static_cast<int32_t>(call.gradient_slot);
  (*operation)
      ->waiters.push_back({.rank = rank,
                           .call = call.context.id,
                           .deadline = absl::Now() + options_.collective_timeout,
                           .done = [done = std::move(done)](const absl::Status& ended) mutable {
                             ended.ok() ? done(Nothing{}) : done(ended);
                           }});
  if (complete) Launch(**operation);
  return absl::OkStatus();
}

void Model::Launch(Operation& operation) {
  operation.launched = true;
  queue_.Push([this, key = operation.key, slots = operation.slots, completion = operation.completion] {
    absl::Status status = key.kind == OperationKind::kGather ? RunGather(key, slots) : RunReduceScatter(key, slots);
    const uint64_t word = status.ok() ? DoneValue(completion) : VoidValue(completion);
    status.Update(SignalSlots(key.kind, slots, word));
    status.Update(SynchronizeAll());
    Finish(completion, status);
  });
}

absl::Status Model::RunGather(const OperationKey& key, const std::vector<int32_t>& slots) {
  const auto num_takers = std::count_if(slots.begin(), slots.end(), [](int32_t slot) { return slot >= 0; });
  if (num_takers == 0) return absl::OkStatus();
  const absl::Time start = absl::Now();
  std::vector<AllGatherTask> tasks;
  int64_t size_bytes = 0;
  for (const FlatParameter& flat : layout_.unit(key.unit).flat_parameters) {
    AllGatherTask task = {.from = flat.master_dtype, .to = flat.param_dtype, .shard_elements = flat.shard_elements};
    for (size_t i = 0; i < slots.size(); ++i) {
      const RankMemory& memory = *memory_[i];
      task.parts.push_back({.rank = memory.rank(),
                            .shard = memory.Shard(flat),
                            .out = slots[i] < 0 ? nullptr : memory.GatherSlot(slots[i]) + flat.gather_offset});
    }
    size_bytes += num_takers * flat.padded_elements(layout_.mesh().num_shard) * SizeOf(flat.param_dtype);
    tasks.push_back(std::move(task));
  }
  if (absl::Status status = collectives_->AllGather(tasks); !status.ok()) return status;
  observer_.CollectiveDone(CollectiveKind::kAllGather, size_bytes, absl::Now() - start);
  return absl::OkStatus();
}

absl::Status Model::RunReduceScatter(const OperationKey& key, const std::vector<int32_t>& slots) {
  const absl::Time start = absl::Now();
  std::vector<ReduceScatterTask> tasks;
  int64_t size_bytes = 0;
  for (const FlatParameter& flat : layout_.unit(key.unit).flat_parameters) {
    if (!flat.trainable) continue;
    ReduceScatterTask task = {.reduce = flat.reduce_dtype,
                              .master = flat.master_dtype,
                              .shard_elements = flat.shard_elements,
                              .accumulate = key.variant};
    for (size_t i = 0; i < slots.size(); ++i) {
      const RankMemory& memory = *memory_[i];
      task.parts.push_back({.rank = memory.rank(),
                            .gradient = memory.GradientSlot(slots[i]) + flat.gradient_slot_offset,
                            .shard = memory.Gradient(flat)});
    }
    size_bytes += num_ranks() * flat.shard_elements * SizeOf(flat.master_dtype);
    tasks.push_back(std::move(task));
  }
  if (absl::Status status = collectives_->ReduceScatter(tasks); !status.ok()) return status;
  observer_.CollectiveDone(CollectiveKind::kReduceScatter, size_bytes, absl::Now() - start);
  return absl::OkStatus();
}

absl::Status Model::SignalSlots(OperationKind kind, const std::vector<int32_t>& slots, uint64_t value) {
  absl::Status status;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0) continue;
    const RankMemory& memory = *memory_[i];
    CompletionWord& word = kind == OperationKind::kGather ? memory.GatherWord(slots[i]) : memory.GradientWord(slots[i]);
    status.Update(memory.device().Signal(*streams_[i], word, value));
  }
  return status;
}

absl::Status Model::SynchronizeAll() {
  absl::Status status;
  for (size_t i = 0; i < memory_.size(); ++i) status.Update(memory_[i]->device().Synchronize(*streams_[i]));
  return status;
}

void Model::Finish(Completion completion, const absl::Status& status) {
  Callbacks after;
  absl::MutexLock lock(&mu_);
  Operation operation = operations_.Close(completion);
  Settle(operation, status, after);
  // A device that fails leaves the ranks with different data; the step can't go on.
  if (!status.ok()) EndEpoch(AbortCause::kDeviceError, status, after);
  GrantBegins();
}

void Model::Settle(Operation& operation, const absl::Status& status, Callbacks& after) {
  for (size_t i = 0; i < operation.slots.size(); ++i) {
    if (operation.slots[i] < 0) continue;
    if (operation.key.kind == OperationKind::kReduceScatter) {
      ranks_[i].busy_gradient_slots.erase(static_cast<uint32_t>(operation.slots[i]));
    } else if (status.ok()) {
      ranks_[i].ring.MarkReady(operation.slots[i]);
    } else {
      ranks_[i].ring.Empty(operation.slots[i]);
    }
  }
  for (Operation::Waiter& waiter : operation.waiters) {
    after.Add([done = std::move(waiter.done), status]() mutable { done(status); });
  }
}

}  // namespace holdfast
