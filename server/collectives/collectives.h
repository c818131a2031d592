// Collectives among the ranks of the mesh. One implementation a backend.
#ifndef HOLDFAST_SERVER_COLLECTIVES_COLLECTIVES_H_
#define HOLDFAST_SERVER_COLLECTIVES_COLLECTIVES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/dtype.h"
#include "common/ids.h"
#include "common/layout.h"

namespace holdfast {

// Every call is made once a node, for all ranks of this node together: a task has one part for each of them, in rank
// order. Nodes make the same calls in the same order. A list of tasks is one call, so that a unit of several flat
// parameters costs one rendezvous. A call is enqueued on the ranks' streams (the CPU does it at once); the results are
// there when those are synchronized. All results are bit-identical from run to run and however the ranks are spread
// over nodes.

// Each shard group: out = the group's shards, one after the other, converted.
struct AllGatherTask {
  struct Part {
    Rank rank;
    // shard_elements of `from`.
    const void* shard = nullptr;
    // num_shard · shard_elements of `to`; null for a rank that has the result already and only gives.
    void* out = nullptr;
  };
  DType from = DType::kUnspecified;
  // Equal to `from`, or both arithmetic.
  DType to = DType::kUnspecified;
  int64_t shard_elements = 0;
  std::vector<Part> parts;
};

// Mean over all ranks of the mesh, as FSDP takes it: in each shard group the sum, pre-divided by a power of two against
// overflow; then, with replicas, the sum over the replica group; then the rest of the division. Sums are taken in
// float32 (float64 for float64) in rank order; each stage's result is rounded to `reduce`, then converted to `master`.
struct ReduceScatterTask {
  struct Part {
    Rank rank;
    // num_shard · shard_elements of `reduce`.
    const void* gradient = nullptr;
    // shard_elements of `master`.
    void* shard = nullptr;
  };
  DType reduce = DType::kUnspecified;
  DType master = DType::kUnspecified;
  int64_t shard_elements = 0;
  // shard += mean rather than shard = mean.
  bool accumulate = false;
  std::vector<Part> parts;
};

// Every rank: out = the sum over all ranks of the mesh, in rank order; in place. For norms and votes.
struct AllReduceTask {
  struct Part {
    Rank rank;
    double* values = nullptr;
  };
  int64_t num_values = 0;
  std::vector<Part> parts;
};

// Every other rank's data become the root's.
struct BroadcastTask {
  struct Part {
    Rank rank;
    void* data = nullptr;
  };
  Rank root;
  int64_t size_bytes = 0;
  std::vector<Part> parts;
};

// The power of two that a gradient is divided by before it is summed over `world` ranks; the sum is divided by
// world / it. torch.distributed.fsdp's _get_gradient_predivide_factor.
double GradientPredivideFactor(int32_t world);

// Calls come from one thread; Abort from any.
class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual const MeshShape& mesh() const = 0;
  virtual absl::Status AllGather(absl::Span<const AllGatherTask> tasks) = 0;
  virtual absl::Status ReduceScatter(absl::Span<const ReduceScatterTask> tasks) = 0;
  virtual absl::Status AllReduce(absl::Span<const AllReduceTask> tasks) = 0;
  virtual absl::Status Broadcast(absl::Span<const BroadcastTask> tasks) = 0;
  // Returns when every node has called it.
  virtual absl::Status Barrier() = 0;
  // Ends what is under way, and every later call, with `reason`.
  virtual void Abort(absl::Status reason) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_COLLECTIVES_COLLECTIVES_H_
