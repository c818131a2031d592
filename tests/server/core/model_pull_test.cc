// Pull: whole tensors out of the shards, of one committed step each.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

constexpr MeshShape kTwoShards = {.num_replicate = 1, .num_shard = 2};

absl::StatusOr<PulledTensor> Pull(ModelWorld& world, const PullCall& call) {
  // A PulledTensor can't be copied; it is taken from the answer here.
  absl::StatusOr<PulledTensor> result = absl::UnknownError("");
  Pending<Nothing> pulled;
  world.model().Pull(call, [&result, done = pulled.Callback()](absl::StatusOr<PulledTensor> tensor) mutable {
    result = std::move(tensor);
    done(Nothing{});
  });
  EXPECT_THAT(pulled.Wait(), IsOk());
  return result;
}

class PullOnEveryMeshTest : public ::testing::TestWithParam<MeshShape> {};

TEST_P(PullOnEveryMeshTest, EveryTensorIsWhatWasWritten) {
  const auto world = ModelWorld::Initialized(SmallModel(GetParam()));
  const ModelValues values(world->layout(), 1);
  for (const std::string& name : world->layout().tensor_names()) {
    const absl::StatusOr<PulledTensor> tensor = Pull(*world, {.tensor = name});
    ASSERT_THAT(tensor, IsOk()) << name;
    EXPECT_EQ(tensor->bytes, values.Tensor(name)) << name;
    EXPECT_EQ(tensor->step, Step(0));
  }
  EXPECT_THAT(Pull(*world, {.tensor = "embed"})->shape, ElementsAre(7, 5));
  EXPECT_THAT(Pull(*world, {.tensor = "scale"})->shape, ElementsAre());
  EXPECT_THAT(Pull(*world, {.tensor = "empty"})->shape, ElementsAre(0, 4));
  EXPECT_EQ(Pull(*world, {.tensor = "table.ids"})->dtype, DType::kInt64);
  // A tied weight is what it is tied to.
  EXPECT_EQ(Pull(*world, {.tensor = "head.weight"})->bytes, Pull(*world, {.tensor = "embed"})->bytes);
}

INSTANTIATE_TEST_SUITE_P(Meshes, PullOnEveryMeshTest,
                         ::testing::Values(MeshShape{1, 1}, MeshShape{1, 3}, MeshShape{2, 2}, MeshShape{3, 1},
                                           MeshShape{1, 8}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.num_replicate, "x", info.param.num_shard);
                         });

class ModelPullTest : public ::testing::Test {
 protected:
  TestWorker& worker(int32_t rank) { return world_->worker(rank); }

  std::unique_ptr<ModelWorld> world_ = ModelWorld::Initialized(SmallModel(kTwoShards));
  const ModelValues values_{world_->layout(), 1};
};

TEST_F(ModelPullTest, FloatingPointTensorsAreConvertedAndOthersLeftAlone) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const std::string& name : world_->layout().tensor_names()) {
      const absl::StatusOr<PulledTensor> tensor = Pull(*world_, {.tensor = name, .dtype = dtype});
      ASSERT_THAT(tensor, IsOk()) << name;
      EXPECT_EQ(tensor->bytes, values_.Tensor(name, dtype)) << name;
    }
    EXPECT_EQ(Pull(*world_, {.tensor = "block.weight", .dtype = dtype})->dtype, dtype);
    EXPECT_EQ(Pull(*world_, {.tensor = "table.ids", .dtype = dtype})->dtype, DType::kInt64);
    EXPECT_EQ(Pull(*world_, {.tensor = "bare.flags", .dtype = dtype})->dtype, DType::kBool);
  }
}

TEST_F(ModelPullTest, AnEmaIsPulledAtTheStepItWasMovedTo) {
  world_->Update(ModelValues(world_->layout(), 2));
  absl::StatusOr<PulledTensor> tensor = Pull(*world_, {.tensor = "block.weight", .ema = "slow"});
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->dtype, DType::kFloat64);
  EXPECT_EQ(tensor->step, Step(0));
  EXPECT_EQ(tensor->bytes, values_.Tensor("block.weight", DType::kFloat64));
  ASSERT_THAT(worker(0).EmaStep().Wait(), IsOk());
  EXPECT_EQ(Pull(*world_, {.tensor = "block.weight", .ema = "slow"})->step, Step(1));
  EXPECT_EQ(Pull(*world_, {.tensor = "block.weight"})->step, Step(1));
  tensor = Pull(*world_, {.tensor = "embed", .ema = "default", .dtype = DType::kBFloat16});
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->bytes.size(), 35u * 2);
  EXPECT_THAT(Pull(*world_, {.tensor = "positions", .ema = "slow"}),
              FailsWith(StatusCode::kNotFound, "'positions' is not trainable, so EMA 'slow' has no copy of it"));
  EXPECT_THAT(Pull(*world_, {.tensor = "mean", .ema = "slow"}), FailsWith(StatusCode::kNotFound, "not trainable"));
  EXPECT_THAT(Pull(*world_, {.tensor = "embed", .ema = "best"}), FailsWith(StatusCode::kNotFound, "no EMA 'best'"));
}

TEST_F(ModelPullTest, WhileRanksAreInTheirUpdateTheCommittedStepIsWhatComes) {
  world_->Update(ModelValues(world_->layout(), 2));
  const ModelValues committed(world_->layout(), 2), next(world_->layout(), 3);
  // One rank after the other opens its update, writes, and commits.
  const auto expect = [this](const ModelValues& values, Step step) {
    for (const std::string& name : world_->layout().tensor_names()) {
      const absl::StatusOr<PulledTensor> tensor = Pull(*world_, {.tensor = name});
      ASSERT_THAT(tensor, IsOk()) << name;
      EXPECT_EQ(tensor->bytes, values.Tensor(name)) << name;
      EXPECT_EQ(tensor->step, step);
    }
  };
  for (int32_t rank = 0; rank < 2; ++rank) {
    ASSERT_THAT(worker(rank).BeginUpdate().Wait(), IsOk());
    next.WriteTo(worker(rank));
    expect(committed, Step(1));
  }
  world_->CommitAll();
  expect(next, Step(2));
}

TEST_F(ModelPullTest, WithoutAnUndoCopyAnOpenUpdateIsNotPulledFrom) {
  v1::ModelSpec spec = SmallModel(kTwoShards);
  spec.set_update_protection(v1::UPDATE_PROTECTION_NONE);
  const auto world = ModelWorld::Initialized(spec);
  ASSERT_THAT(world->worker(1).BeginUpdate().Wait(), IsOk());
  EXPECT_THAT(Pull(*world, {.tensor = "embed"}), FailsWith(StatusCode::kUnavailable, "rank 1 is writing its shards"));
  EXPECT_THAT(Pull(*world, {.tensor = "embed", .ema = "default"}), IsOk());
  ASSERT_THAT(world->worker(0).BeginUpdate().Wait(), IsOk());
  world->CommitAll();
  EXPECT_THAT(Pull(*world, {.tensor = "embed"}), IsOk());
}

TEST_F(ModelPullTest, StagedBytesAreBoundedAndGivenBackWithTheTensor) {
  ModelWorld world(SmallModel(kTwoShards), absl::Minutes(1), /*staging_bytes=*/200);
  world.AttachAll();
  world.Update(ModelValues(world.layout(), 1), UpdateKind::kInitialize);
  {
    const absl::StatusOr<PulledTensor> held = Pull(world, {.tensor = "embed"});
    ASSERT_THAT(held, IsOk());
    EXPECT_THAT(Pull(world, {.tensor = "embed"}),
                FailsWith(StatusCode::kResourceExhausted, "140 of 200 bytes are staged for other Pull streams"));
    EXPECT_THAT(Pull(world, {.tensor = "scale"}), IsOk());
  }
  EXPECT_THAT(Pull(world, {.tensor = "embed"}), IsOk());
  EXPECT_THAT(Pull(world, {.tensor = "embed", .dtype = DType::kFloat64}),
              FailsWith(StatusCode::kResourceExhausted, "raise pull_staging_bytes"));
  // A refused pull holds nothing.
  EXPECT_THAT(Pull(world, {.tensor = "embed"}), IsOk());
}

TEST_F(ModelPullTest, NamesAndGlobsSelectInTheOrderOfRegistration) {
  const Model& model = world_->model();
  EXPECT_THAT(*model.SelectTensors({}, ""), world_->layout().tensor_names());
  EXPECT_THAT(*model.SelectTensors({"scale", "block.*", "embed", "block.bias"}, ""),
              ElementsAre("embed", "scale", "block.weight", "block.mask", "block.bias"));
  EXPECT_THAT(
      *model.SelectTensors({"*"}, "default"),
      ElementsAre("embed", "scale", "empty", "block.weight", "block.bias", "tiny.gain", "head.weight", "head.bias"));
  EXPECT_THAT(*model.SelectTensors({}, "half"), *model.SelectTensors({"*"}, "default"));
  EXPECT_THAT(model.SelectTensors({"embed", "layer?.*"}, ""),
              FailsWith(StatusCode::kNotFound, "names: 'layer?.*' matches no parameter or buffer of model 'small'"));
  EXPECT_THAT(model.SelectTensors({"positions"}, "default"),
              FailsWith(StatusCode::kNotFound, "matches no trainable parameter"));
  EXPECT_THAT(model.SelectTensors({}, "best"), FailsWith(StatusCode::kNotFound, "has no EMA 'best'"));
}

TEST_F(ModelPullTest, AnUnknownTensorOrAModelWithoutParametersIsRefused) {
  EXPECT_THAT(Pull(*world_, {.tensor = "nope"}), FailsWith(StatusCode::kNotFound, "nope"));
  ModelWorld world(SmallModel(kTwoShards));
  EXPECT_THAT(Pull(world, {.tensor = "embed"}), FailsWith(StatusCode::kFailedPrecondition, "no parameters yet"));
  EXPECT_THAT(Pull(world, {.tensor = "embed", .ema = "default"}),
              FailsWith(StatusCode::kFailedPrecondition, "no parameters yet"));
}

}  // namespace
}  // namespace holdfast
