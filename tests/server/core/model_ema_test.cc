// EMA copies of a model: when they move, and from which values.
#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/element/element_reference.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

// Replicas, so that copies on two ranks are to be alike.
constexpr MeshShape kMesh = {.num_replicate = 2, .num_shard = 2};
constexpr size_t kDefault = 0, kSlow = 1, kHalf = 2;

// What every EMA holds of one flat parameter's shard, by the definition, in double.
class EmaReference {
 public:
  EmaReference(const ModelLayout& layout, size_t ema, std::vector<double> initial)
      : dtype_(layout.emas()[ema].dtype), values_(std::move(initial)) {
    for (double& value : values_) value = testing::RoundedTo(dtype_, value);
  }

  // Moves by one step; `last_bits` of error may have come with it.
  void Move(double decay, const std::vector<double>& parameter, double last_bits) {
    tolerances_.resize(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = decay * values_[i] + (1 - decay) * parameter[i];
      tolerances_[i] =
          decay * tolerances_[i] + last_bits * testing::Spacing(dtype_, std::abs(values_[i]) + std::abs(parameter[i]));
    }
  }

  void ExpectIn(absl::Span<const std::byte> shard) const {
    const std::vector<double> found = ValuesOf(shard, dtype_);
    ASSERT_EQ(found.size(), values_.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], values_[i], tolerances_.empty() ? 0 : tolerances_[i]) << "element " << i;
    }
  }

 private:
  const DType dtype_;
  std::vector<double> values_;
  std::vector<double> tolerances_;
};

class ModelEmaTest : public ::testing::Test {
 protected:
  TestWorker& worker(int32_t rank) { return world_->worker(rank); }
  // References of the first flat parameter of "block" on a rank, by EMA.
  std::vector<EmaReference> ReferencesOn(int32_t rank) {
    std::vector<EmaReference> references;
    for (size_t ema = 0; ema < 3; ++ema) references.emplace_back(world_->layout(), ema, ShardOf(1, rank));
    return references;
  }
  std::vector<double> ShardOf(uint64_t seed, int32_t rank) {
    return ModelValues(world_->layout(), seed).Shard(static_cast<size_t>(kBlock.value()), 0, Rank(rank));
  }
  const FlatParameter& flat() { return world_->flat(kBlock, 0); }

  std::unique_ptr<ModelWorld> world_ = ModelWorld::Initialized(SmallModel(kMesh));
};

TEST_F(ModelEmaTest, CopiesFollowTheirSchedulesOverManySteps) {
  std::vector<std::vector<EmaReference>> references;
  for (int32_t rank = 0; rank < 4; ++rank) references.push_back(ReferencesOn(rank));
  for (uint64_t step = 1; step <= 5; ++step) {
    // By its own call or with the commit, as the trainer likes.
    const bool with_commit = step % 2 == 0;
    world_->Update(ModelValues(world_->layout(), step + 1), UpdateKind::kOptimizer, with_commit);
    if (!with_commit) {
      ASSERT_THAT(worker(0).EmaStep().Wait(), IsOk());
    }
    for (int32_t rank = 0; rank < 4; ++rank) {
      std::vector<EmaReference>& of_rank = references[static_cast<size_t>(rank)];
      const std::vector<double> parameter = ShardOf(step + 1, rank);
      of_rank[kDefault].Move(0.5, parameter, 1);
      if (step % 2 == 0) of_rank[kSlow].Move(0.75, parameter, 1);
      // Rounded stochastically: off by less than a last bit, up or down.
      of_rank[kHalf].Move(0.5, parameter, 1.5);
      for (size_t ema = 0; ema < 3; ++ema) of_rank[ema].ExpectIn(worker(rank).Ema(flat(), ema));
    }
    for (size_t ema = 0; ema < 3; ++ema) {
      EXPECT_EQ(BytesOf(worker(0).Ema(flat(), ema)), BytesOf(worker(2).Ema(flat(), ema)));
      EXPECT_EQ(BytesOf(worker(1).Ema(flat(), ema)), BytesOf(worker(3).Ema(flat(), ema)));
    }
  }
  const std::vector<EmaPosition> positions = world_->model().position().emas;
  EXPECT_EQ(positions[kDefault].num_updates, 5u);
  EXPECT_EQ(positions[kSlow].num_updates, 2u);
  for (const EmaPosition& position : positions) EXPECT_EQ(position.step, Step(5));
}

TEST_F(ModelEmaTest, TheFirstCallMovesAllRanksAndLaterOnesAreAnswered) {
  world_->Update(ModelValues(world_->layout(), 2));
  const Pending<std::vector<EmaResult>> first = worker(2).EmaStep();
  ASSERT_THAT(first.Wait(), IsOk());
  ASSERT_EQ(first.Wait()->size(), 3u);
  EXPECT_TRUE((*first.Wait())[kDefault].applied);
  EXPECT_EQ((*first.Wait())[kDefault].name, "default");
  EXPECT_EQ((*first.Wait())[kDefault].decay, 0.5);
  EXPECT_EQ((*first.Wait())[kDefault].num_updates, 1u);
  EXPECT_EQ((*first.Wait())[kSlow].decay, 1);
  std::vector<std::vector<std::byte>> moved;
  for (const auto& worker : world_->workers()) moved.push_back(BytesOf(worker->Data(v1::MEMORY_PURPOSE_EMA)));
  const int passes = world_->observer().record().ema_passes;
  for (const auto& worker : world_->workers()) {
    const Pending<std::vector<EmaResult>> again = worker->EmaStep();
    ASSERT_THAT(again.Wait(), IsOk());
    for (const EmaResult& result : *again.Wait()) EXPECT_FALSE(result.applied);
    EXPECT_EQ((*again.Wait())[kDefault].decay, 0.5);
    EXPECT_EQ((*again.Wait())[kDefault].num_updates, 1u);
  }
  EXPECT_EQ(world_->observer().record().ema_passes, passes);
  for (const auto& worker : world_->workers()) {
    EXPECT_EQ(BytesOf(worker->Data(v1::MEMORY_PURPOSE_EMA)), moved[static_cast<size_t>(worker->rank().value())]);
  }
}

TEST_F(ModelEmaTest, AnAnswerMeansThatTheCopiesAreThereWhoeverMovedThem) {
  world_->Update(ModelValues(world_->layout(), 2));
  LaunchThreadHold hold(world_->model());
  const Pending<std::vector<EmaResult>> first = worker(0).EmaStep();
  const Pending<std::vector<EmaResult>> second = worker(1).EmaStep();
  EXPECT_FALSE(first.answered());
  EXPECT_FALSE(second.answered());
  hold.Release();
  EXPECT_THAT(second.Wait(), IsOk());
  EXPECT_TRUE(first.answered());
}

TEST_F(ModelEmaTest, NamedCopiesMoveAloneAndOnceHoweverOftenNamed) {
  world_->Update(ModelValues(world_->layout(), 2));
  std::vector<EmaReference> references = ReferencesOn(1);
  references[kDefault].Move(0.5, ShardOf(2, 1), 1);
  const Pending<std::vector<EmaResult>> moved = worker(0).EmaStep({"default", "default"});
  ASSERT_THAT(moved.Wait(), IsOk());
  EXPECT_EQ(moved.Wait()->size(), 1u);
  for (size_t ema = 0; ema < 3; ++ema) references[ema].ExpectIn(worker(1).Ema(flat(), ema));
  EXPECT_THAT(worker(0).EmaStep({"best"}).Wait(), FailsWith(StatusCode::kNotFound, "has no EMA 'best'"));
  const Pending<std::vector<EmaResult>> rest = worker(0).EmaStep();
  ASSERT_THAT(rest.Wait(), IsOk());
  EXPECT_FALSE((*rest.Wait())[kDefault].applied);
  EXPECT_TRUE((*rest.Wait())[kHalf].applied);
}

TEST_F(ModelEmaTest, AStepThatTheModelIsNotAtIsRefusedUnlessTheCopyIsThere) {
  for (uint64_t seed : {2, 3}) world_->Update(ModelValues(world_->layout(), seed));
  worker(0).step = Step(1);
  EXPECT_THAT(worker(0).EmaStep().Wait(), FailsWith(StatusCode::kFailedPrecondition, "call.step: 1"));
  worker(0).step = Step(3);
  EXPECT_THAT(worker(0).EmaStep().Wait(), FailsWith(StatusCode::kFailedPrecondition, "call.step: 3"));
  worker(0).step = Step(2);
  ASSERT_THAT(worker(0).EmaStep().Wait(), IsOk());
  worker(0).step = Step(1);
  const Pending<std::vector<EmaResult>> late = worker(0).EmaStep();
  ASSERT_THAT(late.Wait(), IsOk());
  EXPECT_FALSE((*late.Wait())[kDefault].applied);
  EXPECT_EQ(world_->model().position().emas[kDefault].step, Step(2));
}

TEST_F(ModelEmaTest, StepZeroIsWhatTheCopiesStartAs) {
  const Pending<std::vector<EmaResult>> result = worker(0).EmaStep();
  ASSERT_THAT(result.Wait(), IsOk());
  EXPECT_FALSE((*result.Wait())[kDefault].applied);
  EXPECT_EQ((*result.Wait())[kDefault].num_updates, 0u);
}

TEST_F(ModelEmaTest, ARankInItsUpdateContributesItsCommittedShard) {
  world_->Update(ModelValues(world_->layout(), 2));
  std::vector<EmaReference> references = ReferencesOn(1);
  references[kDefault].Move(0.5, ShardOf(2, 1), 1);
  ASSERT_THAT(worker(1).BeginUpdate().Wait(), IsOk());
  ModelValues(world_->layout(), 3).WriteTo(worker(1));
  ASSERT_THAT(worker(0).EmaStep({"default"}).Wait(), IsOk());
  references[kDefault].ExpectIn(worker(1).Ema(flat(), kDefault));
}

TEST_F(ModelEmaTest, WithoutAnUndoCopyAnOpenUpdateKeepsCopiesFromMoving) {
  v1::ModelSpec spec = SmallModel(kMesh);
  spec.set_update_protection(v1::UPDATE_PROTECTION_NONE);
  world_ = ModelWorld::Initialized(spec);
  world_->Update(ModelValues(world_->layout(), 2));
  ASSERT_THAT(worker(1).BeginUpdate().Wait(), IsOk());
  EXPECT_THAT(worker(0).EmaStep().Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "rank 1 is writing its shards of step 2"));
  EXPECT_EQ(world_->model().position().emas[kDefault].step, Step(0));
}

TEST_F(ModelEmaTest, AModelWithoutParametersHasNoEmaToMove) {
  ModelWorld world(SmallModel(kMesh));
  world.AttachAll();
  EXPECT_THAT(world.worker(0).EmaStep().Wait(), FailsWith(StatusCode::kFailedPrecondition, "no parameters yet"));
}

}  // namespace
}  // namespace holdfast
