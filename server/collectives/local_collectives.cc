#include "server/collectives/local_collectives.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/collectives/task_checks.h"
#include "server/device/cpu/kernels/dispatch.h"
#include "server/device/cpu/task_chunks.h"

namespace holdfast {
namespace {

constexpr int64_t kChunkElements = 64 * 1024;
constexpr int64_t kChunkBytes = 256 * 1024;

// Outputs that are together larger than this are written past the caches, which would not hold them anyhow.
constexpr int64_t kStreamingBytes = int64_t{32} << 20;

// Room for the addresses of a piece without an allocation.
template <typename T>
using Addresses = absl::InlinedVector<T*, 16>;

const std::byte* Offset(const void* base, int64_t bytes) { return static_cast<const std::byte*>(base) + bytes; }
std::byte* Offset(void* base, int64_t bytes) { return static_cast<std::byte*>(base) + bytes; }

std::vector<Rank> AllRanks(const MeshShape& mesh) {
  std::vector<Rank> ranks;
  for (int32_t rank = 0; rank < mesh.world(); ++rank) ranks.push_back(Rank(rank));
  return ranks;
}

int64_t OutputBytes(const MeshShape& mesh, absl::Span<const AllGatherTask> tasks) {
  int64_t bytes = 0;
  for (const AllGatherTask& task : tasks) {
    for (const AllGatherTask::Part& part : task.parts) {
      if (part.out != nullptr) bytes += task.shard_elements * mesh.num_shard * SizeOf(task.to);
    }
  }
  return bytes;
}

int64_t OutputBytes(absl::Span<const ReduceScatterTask> tasks) {
  int64_t bytes = 0;
  for (const ReduceScatterTask& task : tasks) {
    bytes += static_cast<int64_t>(task.parts.size()) * task.shard_elements * SizeOf(task.master);
  }
  return bytes;
}

// A piece of the shard of `rank`, to every rank of its shard group.
void GatherPiece(const Kernels& kernels, const MeshShape& mesh, const AllGatherTask& task, Rank rank, int64_t first,
                 int64_t num_elements, bool streaming) {
  const int64_t place = (mesh.ShardOf(rank) * task.shard_elements + first) * SizeOf(task.to);
  Addresses<void> outs;
  for (int32_t shard = 0; shard < mesh.num_shard; ++shard) {
    void* const out = task.parts[static_cast<size_t>(mesh.RankAt(mesh.ReplicaOf(rank), shard).value())].out;
    if (out != nullptr) outs.push_back(Offset(out, place));
  }
  if (outs.empty()) return;
  const void* const source = task.parts[static_cast<size_t>(rank.value())].shard;
  GatherArguments arguments{
      .shard = Offset(source, first * SizeOf(task.from)),
      .outs = outs.data(),
      .num_outs = static_cast<int32_t>(outs.size()),
      .num_elements = num_elements,
      .streaming = streaming,
  };
  if (task.from == task.to) {
    arguments.num_elements *= SizeOf(task.to);
    kernels.gather_bytes(arguments);
  } else {
    Select(kernels.gather, task.from, task.to)(arguments);
  }
}

// A piece of shard `shard` of every replica.
void ReducePiece(const Kernels& kernels, const MeshShape& mesh, const ReduceScatterTask& task, int32_t shard,
                 int64_t first, int64_t num_elements, bool streaming) {
  const int64_t place = (shard * task.shard_elements + first) * SizeOf(task.reduce);
  Addresses<const void> gradients;
  for (const ReduceScatterTask::Part& part : task.parts) gradients.push_back(Offset(part.gradient, place));
  Addresses<void> shards;
  for (int32_t replica = 0; replica < mesh.num_replicate; ++replica) {
    const size_t rank = static_cast<size_t>(mesh.RankAt(replica, shard).value());
    shards.push_back(Offset(task.parts[rank].shard, first * SizeOf(task.master)));
  }
  const double predivide = GradientPredivideFactor(mesh.world());
  Select(kernels.reduce, task.reduce, task.master)(ReduceArguments{
      .gradients = gradients.data(),
      .num_replicate = mesh.num_replicate,
      .num_shard = mesh.num_shard,
      .shards = shards.data(),
      .num_elements = num_elements,
      .predivide = predivide,
      .postdivide = mesh.world() / predivide,
      .accumulate = task.accumulate,
      .streaming = streaming,
  });
}

void SumEverywhere(const AllReduceTask& task) {
  for (int64_t i = 0; i < task.num_values; ++i) {
    double sum = task.parts[0].values[i];
    for (size_t rank = 1; rank < task.parts.size(); ++rank) sum += task.parts[rank].values[i];
    for (const AllReduceTask::Part& part : task.parts) part.values[i] = sum;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCollectives>> LocalCollectives::Create(const MeshShape& mesh, WorkerPool* pool,
                                                                           InstructionSet instruction_set) {
  if (mesh.num_replicate < 1 || mesh.num_shard < 1) {
    return absl::InvalidArgumentError(absl::StrCat("A mesh of ", mesh.num_replicate, " × ", mesh.num_shard,
                                                   " ranks has none; both must be at least 1"));
  }
  absl::StatusOr<const Kernels*> kernels = KernelsFor(instruction_set);
  if (!kernels.ok()) return kernels.status();
  return std::unique_ptr<LocalCollectives>(new LocalCollectives(mesh, pool, *kernels));
}

LocalCollectives::LocalCollectives(const MeshShape& mesh, WorkerPool* pool, const Kernels* kernels)
    : mesh_(mesh), pool_(pool), kernels_(kernels), ranks_(AllRanks(mesh)) {}

absl::Status LocalCollectives::AllGather(absl::Span<const AllGatherTask> tasks) {
  if (absl::Status status = CheckTasks(ranks_, tasks); !status.ok()) return status;
  const bool streaming = OutputBytes(mesh_, tasks) > kStreamingBytes;
  // One length for each shard of each task.
  const size_t world = ranks_.size();
  std::vector<int64_t> lengths;
  for (const AllGatherTask& task : tasks) lengths.insert(lengths.end(), world, task.shard_elements);
  const TaskChunks chunks(lengths, kChunkElements);
  return Run(chunks.num_chunks(), [&](int64_t chunk) {
    chunks.ForEachPiece(chunk, [&](size_t index, int64_t first, int64_t num_elements) {
      GatherPiece(*kernels_, mesh_, tasks[index / world], ranks_[index % world], first, num_elements, streaming);
    });
  });
}

absl::Status LocalCollectives::ReduceScatter(absl::Span<const ReduceScatterTask> tasks) {
  if (absl::Status status = CheckTasks(ranks_, tasks); !status.ok()) return status;
  const bool streaming = OutputBytes(tasks) > kStreamingBytes;
  const size_t num_shard = static_cast<size_t>(mesh_.num_shard);
  std::vector<int64_t> lengths;
  for (const ReduceScatterTask& task : tasks) lengths.insert(lengths.end(), num_shard, task.shard_elements);
  const TaskChunks chunks(lengths, kChunkElements);
  return Run(chunks.num_chunks(), [&](int64_t chunk) {
    chunks.ForEachPiece(chunk, [&](size_t index, int64_t first, int64_t num_elements) {
      ReducePiece(*kernels_, mesh_, tasks[index / num_shard], static_cast<int32_t>(index % num_shard), first,
                  num_elements, streaming);
    });
  });
}

absl::Status LocalCollectives::AllReduce(absl::Span<const AllReduceTask> tasks) {
  if (absl::Status status = CheckTasks(ranks_, tasks); !status.ok()) return status;
  // A few numbers each: handing them out would take longer.
  if (absl::Status status = AbortReason(); !status.ok()) return status;
  for (const AllReduceTask& task : tasks) SumEverywhere(task);
  return absl::OkStatus();
}

absl::Status LocalCollectives::Broadcast(absl::Span<const BroadcastTask> tasks) {
  if (absl::Status status = CheckTasks(mesh_, ranks_, tasks); !status.ok()) return status;
  std::vector<int64_t> lengths;
  for (const BroadcastTask& task : tasks) lengths.push_back(task.size_bytes);
  const TaskChunks chunks(lengths, kChunkBytes);
  return Run(chunks.num_chunks(), [&](int64_t chunk) {
    chunks.ForEachPiece(chunk, [&](size_t index, int64_t first, int64_t size_bytes) {
      const BroadcastTask& task = tasks[index];
      const void* const root = task.parts[static_cast<size_t>(task.root.value())].data;
      for (const BroadcastTask::Part& part : task.parts) {
        if (part.data == root) continue;
        std::memcpy(Offset(part.data, first), Offset(root, first), static_cast<size_t>(size_bytes));
      }
    });
  });
}

absl::Status LocalCollectives::Barrier() { return AbortReason(); }

void LocalCollectives::Abort(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  if (!abort_reason_.ok()) return;
  abort_reason_ = reason.ok() ? absl::AbortedError("The collectives were aborted") : std::move(reason);
  aborted_.store(true);
}

absl::Status LocalCollectives::AbortReason() const {
  absl::MutexLock lock(&mutex_);
  return abort_reason_;
}

absl::Status LocalCollectives::Run(int64_t num_chunks, absl::FunctionRef<void(int64_t)> body) {
  pool_->ParallelFor(num_chunks, [&](int64_t chunk) {
    if (!aborted_.load()) body(chunk);
  });
  return AbortReason();
}

}  // namespace holdfast
