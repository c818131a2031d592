// Training on sharded ranks is the same training as in one process with no shards, step by step.
//
// Tolerance. FULL_SHARD, SHARD_GRAD_OP and NO_SHARD sum the ranks' gradients in rank order in float32, as the unsharded
// process does, and divide by powers of two, which is exact: the parameters must be equal bit for bit. HYBRID_SHARD
// sums (g0 + g1) + (g2 + g3) where the unsharded process sums ((g0 + g1) + g2) + g3. Each has at most three roundings,
// each of at most 2^-24 of a sum that is at most 4 · G, with G the largest gradient of a rank; so the means differ by
// at most 2 · 3 · 2^-24 · G. Momentum 0.9 and the learning rate 0.05 weigh a step's error by at most 0.05 / (1 − 0.9) =
// 0.5 until the end, and there are 20 steps and up to two micro-batches: 20 · 2 · 0.5 · 6 · 2^-24 · G < 7.2e-6 · G.
// (That the errors feed back is left out: a training that converges damps them.) The EMA is a convex combination of
// parameters, with roundings of its own: 1e-6 more.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "tests/integration/regression_training.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"

namespace holdfast {
namespace {

constexpr double kHybridTolerance = 7.2e-6;
constexpr double kEmaTolerance = 1e-6;

struct EqualityCase {
  std::string name;
  int32_t world = 2;
  v1::ShardingStrategy strategy = v1::SHARDING_STRATEGY_FULL_SHARD;
  // Of HYBRID_SHARD.
  uint32_t num_replicate = 0;
  int32_t micro_batches = 1;
  // Times the largest gradient; 0: bit for bit.
  double tolerance = 0;

  v1::Mesh mesh() const {
    v1::Mesh mesh;
    mesh.set_strategy(strategy);
    if (num_replicate == 0) return mesh;
    mesh.set_num_replicate(num_replicate);
    mesh.set_num_shard(static_cast<uint32_t>(world) / num_replicate);
    return mesh;
  }

  friend void PrintTo(const EqualityCase& equality, std::ostream* out) { *out << equality.name; }
};

class TrainingEqualityTest : public testing::TestWithParam<EqualityCase> {
 protected:
  // What is pulled, against the history of the step that each tensor names.
  void Compare(Client& client, const std::string& ema, uint64_t at_least, const std::vector<TensorsByName>& history,
               double tolerance) {
    const absl::StatusOr<std::vector<ModelTensor>> pulled = client.Pull("regression", {.ema = ema});
    ASSERT_THAT(pulled, IsOk());
    ASSERT_EQ(pulled->size(), history[0].size());
    for (const ModelTensor& tensor : *pulled) {
      ASSERT_GE(tensor.step.value(), at_least);
      ASSERT_LT(tensor.step.value(), history.size());
      const at::Tensor& expected = history[tensor.step.value()].at(tensor.name);
      const double off = (tensor.tensor - expected).abs().max().item<double>();
      EXPECT_LE(off, tolerance) << ema << " " << tensor.name << " of step " << tensor.step;
      largest_ = std::max(largest_, off);
    }
  }

  double largest_ = 0;
};

TEST_P(TrainingEqualityTest, EveryStep_EqualsUnsharded) {
  const EqualityCase& param = GetParam();
  at::set_num_threads(1);
  const RegressionRun run = {.world = param.world, .micro_batches = param.micro_batches};
  const RegressionHistory expected = TrainUnsharded(run);
  ASSERT_LT(expected.losses.back(), expected.losses.front() / 2) << "it is to learn something";

  const double tolerance = param.tolerance * expected.largest_gradient;
  absl::StatusOr<std::unique_ptr<TestCluster>> cluster = TestCluster::Start({.num_ranks = param.world});
  ASSERT_THAT(cluster, IsOk());
  ASSERT_THAT((*cluster)->RegisterModel(RegressionSpec("regression", param.mesh())), IsOk());
  std::vector<std::future<absl::Status>> ranks;
  for (int32_t rank = 0; rank < param.world; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank]() -> absl::Status {
      absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = (*cluster)->worker_socket()});
      if (!client.ok()) return client.status();
      absl::StatusOr<std::unique_ptr<Worker>> worker = (*client)->Attach("regression", Rank(rank));
      if (!worker.ok()) return worker.status();
      return TrainRegression(**worker, run, [&](uint64_t step) {
        if (rank == 0) {
          Compare(**client, "", step, expected.values, tolerance);
          Compare(**client, "ema", step, expected.ema, tolerance + kEmaTolerance);
        }
        return absl::OkStatus();
      });
    }));
  }
  for (std::future<absl::Status>& rank : ranks) EXPECT_THAT(rank.get(), IsOk());
  RecordProperty("largest_difference", absl::StrCat(largest_));
}

INSTANTIATE_TEST_SUITE_P(Meshes, TrainingEqualityTest,
                         testing::ValuesIn(std::vector<EqualityCase>{
                             {.name = "FullShard_2"},
                             {.name = "FullShard_4", .world = 4},
                             {.name = "FullShard_4_Accumulated", .world = 4, .micro_batches = 3},
                             {.name = "ShardGradOp_2", .strategy = v1::SHARDING_STRATEGY_SHARD_GRAD_OP},
                             {.name = "ShardGradOp_4", .world = 4, .strategy = v1::SHARDING_STRATEGY_SHARD_GRAD_OP},
                             {.name = "NoShard_2", .strategy = v1::SHARDING_STRATEGY_NO_SHARD},
                             {.name = "NoShard_4", .world = 4, .strategy = v1::SHARDING_STRATEGY_NO_SHARD},
                             {.name = "Hybrid_2x2",
                              .world = 4,
                              .strategy = v1::SHARDING_STRATEGY_HYBRID_SHARD,
                              .num_replicate = 2,
                              .tolerance = kHybridTolerance},
                             {.name = "Hybrid_2x2_Accumulated",
                              .world = 4,
                              .strategy = v1::SHARDING_STRATEGY_HYBRID_SHARD,
                              .num_replicate = 2,
                              .micro_batches = 2,
                              .tolerance = kHybridTolerance},
                         }),
                         [](const testing::TestParamInfo<EqualityCase>& info) { return info.param.name; });

}  // namespace
}  // namespace holdfast
