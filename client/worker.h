// One rank of a training job: its memory as tensors, and the calls of a step.
#ifndef HOLDFAST_CLIENT_WORKER_H_
#define HOLDFAST_CLIENT_WORKER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/future.h"
#include "client/gathered_unit.h"
#include "client/gradient_slot.h"
#include "client/shards.h"
#include "client/worker_options.h"
#include "common/ids.h"
#include "common/layout.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

class Session;

// Made by Client::Attach. To be used by one thread at a time; its futures may be waited on anywhere. Every rank must
// make the same collective calls (Gather, ReduceScatter, BeginUpdate, CommitUpdate, Initialize) in the same order.
//
// A step:
//   for each unit, forward:   auto unit = worker->Gather(u, {u + 1});  ... compute ...;  worker->Release(u);
//   for each unit, backward:  auto unit = worker->Gather(u, {u − 1});  ... compute ...;
//                             auto slot = worker->AcquireGradient(u);  slot->parameter(0, i).copy_(grad); ...
//                             reduced.push_back(worker->ReduceScatter(*std::move(slot)));  worker->Release(u);
//   for each of `reduced`:    Wait();
//   worker->BeginUpdate();  ... write the shards of shards() ...;  worker->CommitUpdate(/*ema_step=*/true);
//
// When a collective call fails on its way to the daemon or in it, or the epoch ends, the worker is out of step: every
// later call fails at once with the same reason, until Rejoin. What a trainer does with any failed step:
//   for (;;) {
//     absl::Status status = TrainStep(*worker);                   // ABORTED: another worker died; or any other error
//     if (status.ok()) continue;
//     absl::StatusOr<v1::ModelState> state = worker->Rejoin();    // rolled back to the committed step
//     if (absl::IsNotFound(state.status())) {                     // the daemon came up empty: declare the model again
//       if (client->RegisterModel(spec).ok()) state = worker->Rejoin();
//     }
//     if (!state.ok()) return state.status();
//     if (!state->initialized() || state->torn()) ... Initialize ...
//     // else: on from state->step(), which is past a step whose commit was made but not heard of
//   }
// A call that was refused here, before it took a sequence number (an unknown unit, no slot free), leaves the worker in
// step; its comment says so.
class Worker {
 public:
  explicit Worker(std::unique_ptr<Session> session);
  // Ends the lease. Calls under way are cancelled.
  ~Worker();

  const std::string& model() const;
  Rank rank() const;
  const ModelLayout& layout() const;
  // Where the model stood at the last answer: CommitUpdate keeps the step up to date, EmaStep the EMA copies, Rejoin
  // all of it.
  const v1::ModelState& state() const;
  Step step() const;
  // OK, or why the worker is out of step. Turns to ABORTED as soon as the daemon tells that the epoch has ended.
  absl::Status status() const;
  // The daemon goes down soon: finish the step, then detach.
  bool draining() const;

  // This rank's own part of the model, one entry a unit. Valid as long as the worker, also after Rejoin.
  const std::vector<UnitShards>& shards() const { return shards_; }

  // All-gathers a unit into a slot of this rank and waits for it; starts the `prefetch` units, in this order, without
  // waiting for them. A unit that was prefetched, or that is held still, is answered with no call at all: only its
  // completion word is waited for. Each unit stays in its slot until it is released or the step is committed.
  // RESOURCE_EXHAUSTED, the worker stays in step: the units held, this one and `prefetch` need more than
  // layout().gather_slots() slots. NOT_FOUND, also in step: no such unit.
  absl::StatusOr<GatheredUnit> Gather(UnitIndex unit, absl::Span<const UnitIndex> prefetch = {});
  absl::StatusOr<GatheredUnit> Gather(std::string_view unit, absl::Span<const std::string> prefetch = {});
  // The same without waiting.
  Future<GatheredUnit> GatherAsync(UnitIndex unit, absl::Span<const UnitIndex> prefetch = {});

  // Gives a unit's slot back; views of it are stale from here on. Makes no call: the daemon is told with the next
  // Gather. A unit that is not held is left alone. NOT_FOUND: no such unit.
  absl::Status Release(UnitIndex unit);
  absl::Status Release(std::string_view unit);
  // Tells the daemon now of what has been released.
  absl::Status FlushReleases();

  // A slot for the unit's gradient; waits for a ReduceScatter to end if all slots are under way. In step stay:
  // RESOURCE_EXHAUSTED (this thread itself holds all slots), NOT_FOUND, INVALID_ARGUMENT (nothing to train in it).
  absl::StatusOr<GradientSlot> AcquireGradient(UnitIndex unit);
  absl::StatusOr<GradientSlot> AcquireGradient(std::string_view unit);
  // Starts reducing the gradient in the slot: the mean over all ranks, to the gradient shards; `accumulate` adds to
  // what they hold. Returns at once, so that backward goes on. The result is there when the gradient shards may be
  // read.
  Future<void> ReduceScatter(GradientSlot&& gradient, bool accumulate = false);

  // Opens the shards for writing; answers when nothing reads them any more. Wait for every ReduceScatter first.
  absl::Status BeginUpdate(v1::UpdateKind kind = v1::UPDATE_KIND_OPTIMIZER);
  // Ends this rank's writing, and answers with the committed step when every rank has. From then on every gathered
  // unit is void. With `ema_step` every EMA copy is moved to the new step in the same call.
  absl::StatusOr<Step> CommitUpdate(bool ema_step = false);
  // Moves EMA copies (all, if none is named) to the committed step, once: another rank's call counts for this one too.
  absl::StatusOr<std::vector<v1::EmaStepResult>> EmaStep(absl::Span<const std::string> names = {});

  // First values: BeginUpdate(INITIALIZE), each rank copies its slices of the whole tensors, CommitUpdate; the EMA
  // copies start as the same values. Converts to the master dtype; fp8 is taken as bytes (at::kByte). Every parameter
  // and buffer must be there with its registered shape; tied names and ignored names may be left out, and are not
  // read. INVALID_ARGUMENT, in step: a missing or unknown name, a wrong shape or dtype.
  absl::Status Initialize(const absl::flat_hash_map<std::string, at::Tensor>& values);
  // The same, tensor by tensor in registration order, so that the model need not be whole in memory. An error from
  // `value`, or a wrong tensor, comes in the middle of the update: the worker is then out of step, and Rejoin rolls
  // back.
  absl::Status Initialize(absl::FunctionRef<absl::StatusOr<at::Tensor>(std::string_view name)> value);

  // Enters the current epoch: calls under way are ended, gathered units and gradient slots are given up, a begun update
  // is rolled back, the next collective call is the first. If the connection or the daemon was lost, it attaches anew,
  // trying for ClientOptions::reattach_timeout, and maps the new memory where the old was, so that the views of
  // shards() stay good. It may be called at any time. FAILED_PRECONDITION: the model there now has another layout.
  // NOT_FOUND: it is not registered there (any more). Until it succeeds every call fails.
  absl::StatusOr<v1::ModelState> Rejoin();

 private:
  std::unique_ptr<Session> session_;
  std::vector<UnitShards> shards_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_WORKER_H_
