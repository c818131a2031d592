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

// A unit of `unit_bytes` as it is gathered in `to`, from float32 shards.
absl::StatusOr<AllGatherTask> MakeTask(LocalNode& node, int world, DType to, int64_t unit_bytes) {
  AllGatherTask task{DType::kFloat32, to, unit_bytes / SizeOf(to) / world, {}};
  for (int rank = 0; rank < world; ++rank) {
    absl::StatusOr<float*> shard = node.AllocateFloats(task.shard_elements);
    if (!shard.ok()) return shard.status();
    absl::StatusOr<std::byte*> out = node.Allocate(unit_bytes);
    if (!out.ok()) return out.status();
    task.parts.push_back({Rank(rank), *shard, *out});
  }
  return task;
}

absl::Status RunCase(const Options& options, int world, DType to, const Report& report) {
  const int64_t unit_bytes = options.quick ? int64_t{1} << 20 : int64_t{64} << 20;
  absl::StatusOr<std::unique_ptr<LocalNode>> node = LocalNode::Create(kThreads);
  if (!node.ok()) return node.status();
  absl::StatusOr<std::unique_ptr<LocalCollectives>> collectives =
      LocalCollectives::Create({1, world}, &(*node)->pool());
  if (!collectives.ok()) return collectives.status();
  absl::StatusOr<AllGatherTask> task = MakeTask(**node, world, to, unit_bytes);
  if (!task.ok()) return task.status();
  absl::StatusOr<std::unique_ptr<GlooPeer>> gloo = GlooPeer::Create(world);
  if (!gloo.ok()) return gloo.status();
  if (absl::Status status = (*gloo)->Prepare(unit_bytes, to != DType::kFloat32); !status.ok()) return status;
  absl::StatusOr<std::byte*> source = (*node)->Allocate(unit_bytes);
  if (!source.ok()) return source.status();
  std::vector<std::byte*> outs;
  for (const AllGatherTask::Part& part : task->parts) outs.push_back(static_cast<std::byte*>(part.out));

  absl::Status status;
  const std::vector<double> seconds =
      MedianSeconds({[&] { status.Update((*collectives)->AllGather({*task})); }, [&] { (*gloo)->AllGather(); },
                     [&] { CopyToEach((*node)->pool(), *source, outs, unit_bytes); }},
                    options.repetitions());
  if (!status.ok()) return status;

  const bool converts = to != DType::kFloat32;
  const std::string name = absl::StrCat(converts ? "fp32 to bf16, " : "fp32, ", unit_bytes >> 20, " MiB, ", world,
                                        " ranks, ", kThreads, " threads");
  const auto aim = [&](double ratio) { return options.quick ? std::nullopt : std::optional<double>(ratio); };
  // Bytes that arrive, on all ranks together.
  const double gigabytes = static_cast<double>(world * unit_bytes) / 1e9;
  const auto compare = [&](const std::string& peer, double other, std::optional<double> wanted) {
    report({"gather", name, peer, gigabytes / seconds[0], gigabytes / other, "GB/s", Better::kHigher, wanted});
  };
  compare(converts ? "Gloo allgather of fp16, no conversion" : "Gloo allgather", seconds[1], aim(3));
  compare(absl::StrCat("memcpy, ", kThreads, " threads"), seconds[2], aim(0.8));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunGather(const Options& options, const Report& report) {
  for (const int world : {2, 4}) {
    for (const DType to : {DType::kFloat32, DType::kBFloat16}) {
      if (absl::Status status = RunCase(options, world, to, report); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast::bench
