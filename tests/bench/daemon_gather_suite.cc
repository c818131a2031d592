#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/daemon_node.h"
#include "tests/bench/gloo_peer.h"
#include "tests/bench/measure.h"
#include "tests/bench/suites.h"

namespace holdfast::bench {
namespace {

constexpr int64_t kUnitBytes = int64_t{64} << 20;

struct Setting {
  std::unique_ptr<DaemonNode> node;
  std::unique_ptr<GlooPeer> gloo;
  int64_t unit_bytes = 0;
  // Bytes that arrive, on all ranks together.
  double gigabytes = 0;
};

absl::StatusOr<Setting> MakeSetting(const Options& options, int world) {
  Setting setting;
  setting.unit_bytes = options.quick ? int64_t{1} << 20 : kUnitBytes;
  setting.gigabytes = static_cast<double>(world * setting.unit_bytes) / 1e9;
  absl::StatusOr<std::unique_ptr<DaemonNode>> node = DaemonNode::Create(world, setting.unit_bytes, DType::kFloat32);
  if (!node.ok()) return node.status();
  setting.node = *std::move(node);
  absl::StatusOr<std::unique_ptr<GlooPeer>> gloo = GlooPeer::Create(world);
  if (!gloo.ok()) return gloo.status();
  setting.gloo = *std::move(gloo);
  if (absl::Status status = setting.gloo->Prepare(setting.unit_bytes, /*half=*/false); !status.ok()) return status;
  return setting;
}

std::string Name(const Setting& setting, int world) {
  return absl::StrCat("through the daemon, fp32, ", setting.unit_bytes >> 20, " MiB, ", world, " ranks");
}

}  // namespace

absl::Status RunDaemonGather(const Options& options, const Report& report) {
  for (const int world : {2, 4}) {
    absl::StatusOr<Setting> setting = MakeSetting(options, world);
    if (!setting.ok()) return setting.status();
    absl::Status status;
    int turn = 0;
    const auto gather = [&] {
      const UnitIndex unit(turn);
      turn = 1 - turn;
      status.Update(setting->node->OnEveryRank([unit](Worker& worker) {
        if (absl::Status gathered = worker.Gather(unit).status(); !gathered.ok()) return gathered;
        return worker.Release(unit);
      }));
    };
    const std::vector<double> seconds =
        MedianSeconds({gather, [&] { setting->gloo->AllGather(); }}, options.repetitions());
    if (!status.ok()) return status;
    report({"gather", Name(*setting, world), "Gloo allgather", setting->gigabytes / seconds[0],
            setting->gigabytes / seconds[1], "GB/s", Better::kHigher,
            options.quick ? std::nullopt : std::optional<double>(3)});
  }
  return absl::OkStatus();
}

absl::Status RunDaemonReduceScatter(const Options& options, const Report& report) {
  for (const int world : {2, 4}) {
    absl::StatusOr<Setting> setting = MakeSetting(options, world);
    if (!setting.ok()) return setting.status();
    absl::Status status;
    const auto reduce = [&] {
      status.Update(setting->node->OnEveryRank([](Worker& worker) {
        absl::StatusOr<GradientSlot> slot = worker.AcquireGradient(UnitIndex(0));
        if (!slot.ok()) return slot.status();
        return worker.ReduceScatter(*std::move(slot)).Wait();
      }));
    };
    const std::vector<double> seconds =
        MedianSeconds({reduce, [&] { setting->gloo->AllReduce(); }}, options.repetitions());
    if (!status.ok()) return status;
    report({"reduce_scatter", Name(*setting, world), "Gloo allreduce", setting->gigabytes / seconds[0],
            setting->gigabytes / seconds[1], "GB/s", Better::kHigher,
            options.quick ? std::nullopt : std::optional<double>(3)});
  }
  return absl::OkStatus();
}

}  // namespace holdfast::bench
