#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/collectives/local_collectives.h"
#include "tests/bench/gloo_peer.h"
#include "tests/bench/local_node.h"
#include "tests/bench/measure.h"
#include "tests/bench/memcpy_peer.h"
#include "tests/bench/suites.h"

namespace holdfast::bench {
namespace {

constexpr int kThreads = 2;

absl::StatusOr<ReduceScatterTask> MakeTask(LocalNode& node, int world, DType reduce, int64_t unit_bytes) {
  ReduceScatterTask task{reduce, DType::kFloat32, unit_bytes / SizeOf(reduce) / world, false, {}};
  for (int rank = 0; rank < world; ++rank) {
    // Any bytes do: as bfloat16 they are numbers, too.
    absl::StatusOr<float*> gradient = node.AllocateFloats(unit_bytes / 4);
    if (!gradient.ok()) return gradient.status();
    absl::StatusOr<float*> shard = node.AllocateFloats(task.shard_elements);
    if (!shard.ok()) return shard.status();
    task.parts.push_back({Rank(rank), *gradient, *shard});
  }
  return task;
}

absl::Status RunCase(const Options& options, int world, DType reduce, const Report& report) {
  const int64_t unit_bytes = options.quick ? int64_t{1} << 20 : int64_t{64} << 20;
  absl::StatusOr<std::unique_ptr<LocalNode>> node = LocalNode::Create(kThreads);
  if (!node.ok()) return node.status();
  absl::StatusOr<std::unique_ptr<LocalCollectives>> collectives =
      LocalCollectives::Create({1, world}, &(*node)->pool());
  if (!collectives.ok()) return collectives.status();
  absl::StatusOr<ReduceScatterTask> task = MakeTask(**node, world, reduce, unit_bytes);
  if (!task.ok()) return task.status();
  absl::StatusOr<std::unique_ptr<GlooPeer>> gloo = GlooPeer::Create(world);
  if (!gloo.ok()) return gloo.status();
  if (absl::Status status = (*gloo)->Prepare(unit_bytes, reduce != DType::kFloat32); !status.ok()) return status;
  absl::StatusOr<std::byte*> source = (*node)->Allocate(unit_bytes);
  if (!source.ok()) return source.status();
  std::vector<std::byte*> targets;
  for (int rank = 0; rank < world; ++rank) {
    absl::StatusOr<std::byte*> target = (*node)->Allocate(unit_bytes);
    if (!target.ok()) return target.status();
    targets.push_back(*target);
  }

  absl::Status status;
  const std::vector<double> seconds =
      MedianSeconds({[&] { status.Update((*collectives)->ReduceScatter({*task})); }, [&] { (*gloo)->AllReduce(); },
                     [&] { CopyToEach((*node)->pool(), *source, targets, unit_bytes); }},
                    options.repetitions());
  if (!status.ok()) return status;

  const bool narrow = reduce != DType::kFloat32;
  const std::string name = absl::StrCat(narrow ? "bf16 to fp32, " : "fp32, ", unit_bytes >> 20, " MiB, ", world,
                                        " ranks, ", kThreads, " threads");
  // Bytes of gradients that are reduced, of all ranks together.
  const double gigabytes = static_cast<double>(world * unit_bytes) / 1e9;
  const auto compare = [&](const std::string& peer, double other, std::optional<double> wanted) {
    report({"reduce_scatter", name, peer, gigabytes / seconds[0], gigabytes / other, "GB/s", Better::kHigher, wanted});
  };
  const std::optional<double> aim = options.quick ? std::nullopt : std::optional<double>(3);
  compare(narrow ? "Gloo allreduce of fp16" : "Gloo allreduce", seconds[1], aim);
  compare(absl::StrCat("memcpy, ", kThreads, " threads"), seconds[2], std::nullopt);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunReduceScatter(const Options& options, const Report& report) {
  for (const int world : {2, 4}) {
    for (const DType reduce : {DType::kFloat32, DType::kBFloat16}) {
      if (absl::Status status = RunCase(options, world, reduce, report); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast::bench
