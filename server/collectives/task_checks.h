// Whether tasks are what collectives.h asks for.
#ifndef HOLDFAST_SERVER_COLLECTIVES_TASK_CHECKS_H_
#define HOLDFAST_SERVER_COLLECTIVES_TASK_CHECKS_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/ids.h"
#include "common/layout.h"
#include "server/collectives/collectives.h"

namespace holdfast {

// `ranks` are the ranks of this node, in rank order: a task must have one part for each of them, in that order.
// INVALID_ARGUMENT names the call, the task, and what is wrong with it.
absl::Status CheckTasks(absl::Span<const Rank> ranks, absl::Span<const AllGatherTask> tasks);
absl::Status CheckTasks(absl::Span<const Rank> ranks, absl::Span<const ReduceScatterTask> tasks);
absl::Status CheckTasks(absl::Span<const Rank> ranks, absl::Span<const AllReduceTask> tasks);
// A broadcast's root is a rank of `mesh`.
absl::Status CheckTasks(const MeshShape& mesh, absl::Span<const Rank> ranks, absl::Span<const BroadcastTask> tasks);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_COLLECTIVES_TASK_CHECKS_H_
