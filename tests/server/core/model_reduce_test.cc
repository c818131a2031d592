// ReduceScatter: means, accumulation, and the slots that gradients are read from.
#include <random>
#include <tuple>
#include <vector>

#include "common/futex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/element/element_reference.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using absl::StatusCode;

constexpr MeshShape kTwoShards = {.num_replicate = 1, .num_shard = 2};

// Gradients that are whole multiples of the number of ranks, so that every mean is exact in every dtype.
class Gradients {
 public:
  Gradients(const FlatParameter& flat, const MeshShape& mesh, uint64_t seed) : flat_(flat), mesh_(mesh) {
    for (int32_t rank = 0; rank < mesh.world(); ++rank) {
      std::vector<double>& of_rank = gradients_.emplace_back(
          testing::RandomIntegers(flat.padded_elements(mesh.num_shard), seed * 100 + static_cast<uint64_t>(rank), 4));
      for (double& gradient : of_rank) gradient *= mesh.world();
    }
  }

  void WriteTo(const TestWorker& worker, int32_t slot) const {
    const std::vector<std::byte> bytes =
        testing::EncodeAll(flat_.reduce_dtype, gradients_[static_cast<size_t>(worker.rank().value())]);
    std::copy(bytes.begin(), bytes.end(), worker.GradientSlot(slot, flat_).begin());
  }

  // The rank's shard of the mean.
  std::vector<double> MeanOn(Rank rank) const {
    std::vector<double> mean;
    const int64_t first = mesh_.ShardOf(rank) * flat_.shard_elements;
    for (int64_t i = first; i < first + flat_.shard_elements; ++i) {
      double sum = 0;
      for (const std::vector<double>& of_rank : gradients_) sum += of_rank[static_cast<size_t>(i)];
      mean.push_back(sum / mesh_.world());
    }
    return mean;
  }

 private:
  const FlatParameter& flat_;
  const MeshShape mesh_;
  std::vector<std::vector<double>> gradients_;
};

std::vector<double> Sum(std::vector<double> a, const std::vector<double>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

void ReduceAll(ModelWorld& world, const std::string& unit, uint32_t slot, bool accumulate) {
  std::vector<Pending<Nothing>> reductions;
  for (const auto& worker : world.workers()) reductions.push_back(worker->ReduceScatter(unit, slot, accumulate));
  for (const Pending<Nothing>& pending : reductions) ASSERT_THAT(pending.Wait(), IsOk());
}

class ReduceOnEveryMeshTest : public ::testing::TestWithParam<std::tuple<MeshShape, v1::DataType>> {};

TEST_P(ReduceOnEveryMeshTest, GradientShardsAreTheMeanOverAllRanksAndAccumulate) {
  const MeshShape mesh = std::get<0>(GetParam());
  v1::ModelSpec spec = SmallModel(mesh);
  spec.mutable_precision()->set_reduce(std::get<1>(GetParam()));
  const auto world = ModelWorld::Initialized(spec);
  for (const UnitLayout& unit : world->layout().units()) {
    for (const FlatParameter& flat : unit.flat_parameters) {
      if (!flat.trainable) continue;
      const Gradients first(flat, mesh, 1), second(flat, mesh, 2), third(flat, mesh, 3);
      for (const auto& worker : world->workers()) {
        first.WriteTo(*worker, 0);
        second.WriteTo(*worker, 1);
      }
      ReduceAll(*world, unit.name, 0, /*accumulate=*/false);
      for (const auto& worker : world->workers()) {
        EXPECT_EQ(ValuesOf(worker->Gradient(flat), flat.master_dtype), first.MeanOn(worker->rank()));
      }
      ReduceAll(*world, unit.name, 1, /*accumulate=*/true);
      for (const auto& worker : world->workers()) {
        EXPECT_EQ(ValuesOf(worker->Gradient(flat), flat.master_dtype),
                  Sum(first.MeanOn(worker->rank()), second.MeanOn(worker->rank())));
        third.WriteTo(*worker, 0);
      }
      // Without accumulate it starts afresh.
      ReduceAll(*world, unit.name, 0, /*accumulate=*/false);
      for (const auto& worker : world->workers()) {
        EXPECT_EQ(ValuesOf(worker->Gradient(flat), flat.master_dtype), third.MeanOn(worker->rank()));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, ReduceOnEveryMeshTest,
                         ::testing::Combine(::testing::Values(MeshShape{1, 1}, MeshShape{1, 3}, MeshShape{2, 2},
                                                              MeshShape{3, 1}, MeshShape{2, 4}),
                                            ::testing::Values(v1::DATA_TYPE_BFLOAT16, v1::DATA_TYPE_FLOAT32)),
                         [](const auto& info) {
                           const MeshShape& mesh = std::get<0>(info.param);
                           return absl::StrCat(
                               mesh.num_replicate, "x", mesh.num_shard,
                               std::get<1>(info.param) == v1::DATA_TYPE_FLOAT32 ? "_float32" : "_bfloat16");
                         });

class ModelReduceTest : public ::testing::Test {
 protected:
  TestWorker& worker(int32_t rank) { return world_->worker(rank); }

  std::unique_ptr<ModelWorld> world_ = ModelWorld::Initialized(SmallModel(kTwoShards));
  const FlatParameter& flat_ = world_->flat(kBlock, 0);
};

TEST_F(ModelReduceTest, AccumulatingOntoNothingIsRefusedAndChangesNothing) {
  const Gradients gradients(flat_, kTwoShards, 1);
  for (int32_t rank = 0; rank < 2; ++rank) gradients.WriteTo(worker(rank), 0);
  const std::vector<std::byte> before = BytesOf(worker(0).Data(v1::MEMORY_PURPOSE_GRADIENTS));
  EXPECT_THAT(worker(0).ReduceScatter("block", 0, /*accumulate=*/true).Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "unit 'block' has no gradient of step 0 to add to"));
  worker(0).TakeBack();
  EXPECT_EQ(BytesOf(worker(0).Data(v1::MEMORY_PURPOSE_GRADIENTS)), before);
  ReduceAll(*world_, "block", 0, /*accumulate=*/false);
  EXPECT_EQ(ValuesOf(worker(0).Gradient(flat_), flat_.master_dtype), gradients.MeanOn(Rank(0)));
  // A gradient of a step that is over is none of the next.
  world_->Update(ModelValues(world_->layout(), 2));
  EXPECT_THAT(worker(0).ReduceScatter("block", 0, /*accumulate=*/true).Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "no gradient of step 1"));
}

TEST_F(ModelReduceTest, AGradientOfAnEndedEpochIsNotAddedTo) {
  ReduceAll(*world_, "block", 0, /*accumulate=*/false);
  worker(1).Die();
  world_->Attach(1);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  EXPECT_THAT(worker(0).ReduceScatter("block", 0, /*accumulate=*/true).Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "no gradient of step 0"));
}

TEST_F(ModelReduceTest, ASlotIsBusyUntilItsReductionIsDone) {
  const Pending<Nothing> first = worker(0).ReduceScatter("block", 0);
  EXPECT_THAT(worker(0).ReduceScatter("tiny", 0).Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "gradient_slot: 0 is still being reduced"));
  worker(0).TakeBack();
  const Pending<Nothing> other_slot = worker(0).ReduceScatter("tiny", 1);
  const CompletionWord& word = worker(0).Header(v1::MEMORY_PURPOSE_GRADIENT_SLOTS).words[0];
  const uint64_t before = word;
  // The peer may use its slots the other way round.
  ASSERT_THAT(worker(1).ReduceScatter("block", 1).Wait(), IsOk());
  ASSERT_THAT(first.Wait(), IsOk());
  EXPECT_GT(word, before);
  EXPECT_EQ(word % 2, 0u);
  const Pending<Nothing> again = worker(0).ReduceScatter("head", 0);
  ASSERT_THAT(worker(1).ReduceScatter("tiny", 0).Wait(), IsOk());
  ASSERT_THAT(worker(1).ReduceScatter("head", 0).Wait(), IsOk());
  EXPECT_THAT(other_slot.Wait(), IsOk());
  EXPECT_THAT(again.Wait(), IsOk());
}

TEST_F(ModelReduceTest, AnEndedEpochGivesTheSlotBackAsVoid) {
  const Pending<Nothing> pending = worker(0).ReduceScatter("block", 1);
  const std::vector<std::byte> before = BytesOf(worker(0).Data(v1::MEMORY_PURPOSE_GRADIENTS));
  worker(1).Die();
  EXPECT_THAT(pending.Wait(), FailsWith(StatusCode::kAborted, "rank 1"));
  world_->Attach(1);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  EXPECT_EQ(worker(0).Header(v1::MEMORY_PURPOSE_GRADIENT_SLOTS).words[1] % 2, 1u);
  EXPECT_EQ(BytesOf(worker(0).Data(v1::MEMORY_PURPOSE_GRADIENTS)), before);
  ReduceAll(*world_, "block", 1, /*accumulate=*/false);
}

TEST_F(ModelReduceTest, BadCallsAreRefusedAndUseNoNumber) {
  const auto refused = [this](const std::string& unit, uint32_t slot) {
    const absl::Status status = worker(0).ReduceScatter(unit, slot).Wait().status();
    worker(0).TakeBack();
    return status;
  };
  EXPECT_THAT(refused("nope", 0), FailsWith(StatusCode::kNotFound, "nope"));
  EXPECT_THAT(refused("table", 0), FailsWith(StatusCode::kInvalidArgument, "'table' has no trainable parameter"));
  EXPECT_THAT(refused("bare", 0), FailsWith(StatusCode::kInvalidArgument, "'bare' has no trainable parameter"));
  EXPECT_THAT(refused("block", 2), FailsWith(StatusCode::kInvalidArgument, "gradient_slot: 2; slots are 0 to 1"));
  EXPECT_THAT(refused("block", UINT32_MAX), FailsWith(StatusCode::kInvalidArgument, "slots are 0 to 1"));
  ReduceAll(*world_, "block", 0, /*accumulate=*/false);
}

TEST_F(ModelReduceTest, ARankInItsUpdateReducesNothing) {
  ASSERT_THAT(worker(0).BeginUpdate().Wait(), IsOk());
  EXPECT_THAT(worker(0).ReduceScatter("block").Wait(), FailsWith(StatusCode::kFailedPrecondition, "commit first"));
}

}  // namespace
}  // namespace holdfast
