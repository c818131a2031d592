// Collectives among ranks that are all in this process: direct passes over their memory.
#ifndef HOLDFAST_SERVER_COLLECTIVES_LOCAL_COLLECTIVES_H_
#define HOLDFAST_SERVER_COLLECTIVES_LOCAL_COLLECTIVES_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/collectives/collectives.h"
#include "server/device/cpu/instruction_set.h"
#include "server/device/cpu/kernels/kernels.h"
#include "server/device/cpu/worker_pool.h"

namespace holdfast {

// Every call is done when it returns, by the threads of `pool`. The bits of a result depend neither on the number of
// threads nor on the instruction set.
//
// A ReduceScatter divides and rounds where torch.distributed.fsdp (FSDP1) does: with `pre` the factor of
// GradientPredivideFactor and `post` = world / pre, for each element
//   group  = round(Σ over the shard group, in rank order, gradient / pre)
//   total  = group, or with replicas round(Σ over replicas, in order, group)
//   mean   = round(total / post)
//   shard  = master(mean), or with `accumulate` master(shard + master(mean))
// where round is to the reduce dtype and sums are float32, or float64 where reduce is float64. (An accumulation is
// added in the sum type of master.)
//
// INVALID_ARGUMENT names a task that contradicts collectives.h, and then none of the call's tasks has been begun. After
// an Abort outputs are void.
class LocalCollectives final : public Collectives {
 public:
  // `pool` outlives the collectives. INVALID_ARGUMENT for a mesh without ranks; FAILED_PRECONDITION if this machine
  // has not the instructions.
  static absl::StatusOr<std::unique_ptr<LocalCollectives>> Create(
      const MeshShape& mesh, WorkerPool* pool, InstructionSet instruction_set = BestInstructionSet());

  const MeshShape& mesh() const override { return mesh_; }
  absl::Status AllGather(absl::Span<const AllGatherTask> tasks) override;
  absl::Status ReduceScatter(absl::Span<const ReduceScatterTask> tasks) override;
  absl::Status AllReduce(absl::Span<const AllReduceTask> tasks) override;
  absl::Status Broadcast(absl::Span<const BroadcastTask> tasks) override;
  absl::Status Barrier() override;
  // The first reason stays; an OK one counts as ABORTED.
  void Abort(absl::Status reason) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  LocalCollectives(const MeshShape& mesh, WorkerPool* pool, const Kernels* kernels);

  // OK, or why it was aborted.
  absl::Status AbortReason() const ABSL_LOCKS_EXCLUDED(mutex_);
  // WorkerPool::ParallelFor that leaves the rest out once aborted.
  absl::Status Run(int64_t num_chunks, absl::FunctionRef<void(int64_t)> body);

  const MeshShape mesh_;
  WorkerPool* const pool_;
  const Kernels* const kernels_;
  // 0 to world − 1.
  const std::vector<Rank> ranks_;

  // Set after abort_reason_; lets chunks look without the lock.
  std::atomic<bool> aborted_{false};
  mutable absl::Mutex mutex_;
  absl::Status abort_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_COLLECTIVES_LOCAL_COLLECTIVES_H_
