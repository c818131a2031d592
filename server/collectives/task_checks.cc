#include "server/collectives/task_checks.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

absl::Status TaskError(const char* call, size_t task, const std::string& fault) {
  return absl::InvalidArgumentError(absl::StrCat(call, ", task ", task, ": ", fault));
}

template <typename Part>
absl::Status CheckParts(const char* call, size_t task, absl::Span<const Rank> ranks, const std::vector<Part>& parts) {
  if (parts.size() != ranks.size()) {
    return TaskError(call, task,
                     absl::StrCat("it has ", parts.size(), " parts; this node has ", ranks.size(), " ranks"));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].rank != ranks[i]) {
      return TaskError(
          call, task,
          absl::StrCat("part ", i, " is of rank ", parts[i].rank.value(), "; rank ", ranks[i].value(), " comes there"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const char* call, size_t task, const char* name, int64_t count) {
  if (count >= 0) return absl::OkStatus();
  return TaskError(call, task, absl::StrCat(name, " is ", count));
}

absl::Status CheckAddress(const char* call, size_t task, Rank rank, const char* name, const void* address) {
  if (address != nullptr) return absl::OkStatus();
  return TaskError(call, task, absl::StrCat("rank ", rank.value(), " has no ", name));
}

absl::Status CheckArithmetic(const char* call, size_t task, const char* name, DType dtype) {
  if (IsArithmetic(dtype)) return absl::OkStatus();
  return TaskError(
      call, task,
      absl::StrCat(name, " is ", std::string(Name(dtype)), "; it must be float32, bfloat16, float16 or float64"));
}

absl::Status Check(absl::Span<const Rank> ranks, size_t index, const AllGatherTask& task) {
  constexpr const char* kCall = "AllGather";
  if (absl::Status status = CheckParts(kCall, index, ranks, task.parts); !status.ok()) return status;
  if (absl::Status status = CheckCount(kCall, index, "shard_elements", task.shard_elements); !status.ok()) {
    return status;
  }
  if (SizeOf(task.from) == 0 || SizeOf(task.to) == 0) return TaskError(kCall, index, "a dtype is missing");
  if (task.from != task.to && !(IsArithmetic(task.from) && IsArithmetic(task.to))) {
    return TaskError(
        kCall, index,
        absl::StrCat("no conversion from ", std::string(Name(task.from)), " to ", std::string(Name(task.to)),
                     "; only float32, bfloat16, float16 and float64 are converted"));
  }
  if (task.shard_elements == 0) return absl::OkStatus();
  for (const AllGatherTask::Part& part : task.parts) {
    if (absl::Status status = CheckAddress(kCall, index, part.rank, "shard", part.shard); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Check(absl::Span<const Rank> ranks, size_t index, const ReduceScatterTask& task) {
  constexpr const char* kCall = "ReduceScatter";
  if (absl::Status status = CheckParts(kCall, index, ranks, task.parts); !status.ok()) return status;
  if (absl::Status status = CheckCount(kCall, index, "shard_elements", task.shard_elements); !status.ok()) {
    return status;
  }
  if (absl::Status status = CheckArithmetic(kCall, index, "reduce", task.reduce); !status.ok()) return status;
  if (absl::Status status = CheckArithmetic(kCall, index, "master", task.master); !status.ok()) return status;
  if (task.shard_elements == 0) return absl::OkStatus();
  for (const ReduceScatterTask::Part& part : task.parts) {
    if (absl::Status status = CheckAddress(kCall, index, part.rank, "gradient", part.gradient); !status.ok()) {
      return status;
    }
    if (absl::Status status = CheckAddress(kCall, index, part.rank, "shard", part.shard); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Check(absl::Span<const Rank> ranks, size_t index, const AllReduceTask& task) {
  constexpr const char* kCall = "AllReduce";
  if (absl::Status status = CheckParts(kCall, index, ranks, task.parts); !status.ok()) return status;
  if (absl::Status status = CheckCount(kCall, index, "num_values", task.num_values); !status.ok()) return status;
  if (task.num_values == 0) return absl::OkStatus();
  for (const AllReduceTask::Part& part : task.parts) {
    if (absl::Status status = CheckAddress(kCall, index, part.rank, "values", part.values); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const MeshShape& mesh, absl::Span<const Rank> ranks, size_t index, const BroadcastTask& task) {
  constexpr const char* kCall = "Broadcast";
  if (absl::Status status = CheckParts(kCall, index, ranks, task.parts); !status.ok()) return status;
  if (absl::Status status = CheckCount(kCall, index, "size_bytes", task.size_bytes); !status.ok()) return status;
  if (task.root.value() < 0 || task.root.value() >= mesh.world()) {
    return TaskError(kCall, index, absl::StrCat("root is ", task.root.value(), "; ranks are 0 to ", mesh.world() - 1));
  }
  if (task.size_bytes == 0) return absl::OkStatus();
  for (const BroadcastTask::Part& part : task.parts) {
    if (absl::Status status = CheckAddress(kCall, index, part.rank, "data", part.data); !status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename Task>
absl::Status CheckAll(absl::Span<const Rank> ranks, absl::Span<const Task> tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (absl::Status status = Check(ranks, i, tasks[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTasks(absl::Span<const Rank> ranks, absl::Span<const AllGatherTask> tasks) {
  return CheckAll(ranks, tasks);
}

absl::Status CheckTasks(absl::Span<const Rank> ranks, absl::Span<const ReduceScatterTask> tasks) {
  return CheckAll(ranks, tasks);
}

absl::Status CheckTasks(absl::Span<const Rank> ranks, absl::Span<const AllReduceTask> tasks) {
  return CheckAll(ranks, tasks);
}

absl::Status CheckTasks(const MeshShape& mesh, absl::Span<const Rank> ranks, absl::Span<const BroadcastTask> tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (absl::Status status = Check(mesh, ranks, i, tasks[i]); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace holdfast
