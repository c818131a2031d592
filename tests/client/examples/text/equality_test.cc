// Training whose parameters live in holdfast equals the same training in one process that knows nothing of it, step by
// step: workers, daemon and a kill are all real.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "client/examples/text/launcher.h"
#include "client/examples/text/model_spec.h"
#include "client/examples/text/solo.h"
#include "tests/client/examples/text/small_training.h"
#include "tests/integration/test_cluster.h"

namespace text {
namespace {

struct Case {
  std::string name;
  std::string strategy;
  int32_t num_replicate;
  at::ScalarType param_dtype;
  uint64_t kill_at_step;
  // Largest difference of a loss, and of a final weight.
  double tolerance;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EqualityTest : public testing::TestWithParam<Case> {
 protected:
  // As the workers; with more threads sums are taken in another order.
  EqualityTest() { at::set_num_threads(1); }
};

// The largest difference between two sets of weights of the same names.
double Difference(const Weights& one, const Weights& other) {
  EXPECT_EQ(one.size(), other.size());
  double largest = 0;
  for (const auto& [name, weight] : one) {
    const auto it = other.find(name);
    if (it == other.end()) {
      ADD_FAILURE() << name << " is missing";
      continue;
    }
    largest = std::max(largest, (weight - it->second).abs().max().item<double>());
  }
  return largest;
}

absl::StatusOr<Weights> Pull(const std::string& socket, const std::string& ema, uint64_t step) {
  auto client = holdfast::Client::Connect({.address = socket});
  if (!client.ok()) return client.status();
  const auto tensors = (*client)->Pull("text", {.ema = ema});
  if (!tensors.ok()) return tensors.status();
  Weights weights;
  for (const holdfast::ModelTensor& tensor : *tensors) {
    EXPECT_EQ(tensor.step.value(), step) << tensor.name;
    weights[tensor.name] = tensor.tensor;
  }
  return weights;
}

TEST_P(EqualityTest, Sharded_EqualsSolo_StepByStep) {
  const Case& c = GetParam();
  const auto data = TextData::Load(kGpl);
  ASSERT_TRUE(data.ok()) << data.status();
  TrainingConfig config = SmallTraining(*data);
  config.param_dtype = c.param_dtype;
  const auto cluster = holdfast::TestCluster::Start({.num_ranks = kNumRanks});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::string socket = (*cluster)->worker_socket();

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::tmpfile(), &std::fclose);
  ProgressLine progress(out.get(), kNumSteps);
  LaunchOptions options =
      SmallLaunch(socket, {absl::StrCat("--strategy=", c.strategy), absl::StrCat("--replicas=", c.num_replicate),
                           absl::StrCat("--param_dtype=", c.param_dtype == at::kFloat ? "float32" : "bfloat16")});
  options.kill_at_step = c.kill_at_step;
  const auto result = Launch(options, progress);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->kill.has_value(), c.kill_at_step > 0);
  if (result->kill.has_value()) {
    EXPECT_GE(result->kill->committed_step, c.kill_at_step);
    EXPECT_GT(result->kill->new_epoch, result->kill->old_epoch);
  }

  double loss_difference = 0;
  size_t num_compared = 0;
  const SoloResult solo = TrainSolo(config, *data, [&](const StepReport& expected) {
    const auto step = result->log.steps().find(expected.step);
    if (step == result->log.steps().end()) return;
    const auto actual = step->second.find(expected.rank);
    if (actual == step->second.end()) return;
    loss_difference = std::max(loss_difference, std::abs(double{actual->second.loss} - expected.loss));
    ++num_compared;
  });
  // A worker that is killed may have committed one step without reporting it.
  EXPECT_GE(num_compared, kNumSteps * kNumRanks - (c.kill_at_step > 0 ? 1 : 0));
  const auto weights = Pull(socket, "", kNumSteps);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto ema = Pull(socket, kEma, kNumSteps);
  ASSERT_TRUE(ema.ok()) << ema.status();
  const double weight_difference = Difference(solo.weights, *weights), ema_difference = Difference(solo.ema, *ema);
  std::printf("%s: largest difference of a loss %g, of a weight %g, of an EMA weight %g\n", c.name.c_str(),
              loss_difference, weight_difference, ema_difference);
  EXPECT_LE(loss_difference, c.tolerance);
  EXPECT_LE(weight_difference, c.tolerance);
  // The reference rounds decay·ema + (1 − decay)·w once less a step (a fused multiply-add): at most half a unit in the
  // last place of values below 4, 2.4e-7, of which 1 / (1 − 0.98) = 50 add up at the very most.
  EXPECT_LE(ema_difference, c.tolerance + 50 * 2.4e-7);
}

// With one stage of reduction the sums are the same operations in the same order as the reference's: gradients are
// added in rank order, and dividing by 2, and by 2 again, is exact. So nothing at all may differ, also when weights are
// gathered in bfloat16, and also when a worker dies on the way. HYBRID_SHARD adds in pairs: (g0 + g1) + (g2 + g3). That
// is another rounding of float32 sums, 6e-8 of their size, which AdamW scales up where gradients are small beside it
// (it divides by their root mean square): a weight may then move by a part of the learning rate, 5e-3, in each of the
// first steps; 1e-4 is a fiftieth of one.
INSTANTIATE_TEST_SUITE_P(All, EqualityTest,
                         testing::Values(Case{"FullShard", "FULL_SHARD", 0, at::kFloat, 0, 0},
                                         Case{"FullShardKilled", "FULL_SHARD", 0, at::kFloat, 15, 0},
                                         Case{"FullShardBFloat16Killed", "FULL_SHARD", 0, at::kBFloat16, 15, 0},
                                         Case{"ShardGradOpKilled", "SHARD_GRAD_OP", 0, at::kFloat, 15, 0},
                                         Case{"NoShard", "NO_SHARD", 0, at::kFloat, 0, 0},
                                         Case{"HybridShardKilled", "HYBRID_SHARD", 2, at::kFloat, 15, 1e-4}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace text
