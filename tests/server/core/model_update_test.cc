// BeginUpdate and CommitUpdate as long as everybody lives.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using absl::StatusCode;

constexpr MeshShape kTwoShards = {.num_replicate = 1, .num_shard = 2};

class ModelUpdateTest : public ::testing::Test {
 protected:
  TestWorker& worker(int32_t rank) { return world_->worker(rank); }
  Model& model() { return world_->model(); }

  std::unique_ptr<ModelWorld> world_ = ModelWorld::Initialized(SmallModel(kTwoShards));
};

TEST_F(ModelUpdateTest, BeginDoesNotWaitForPeers) {
  EXPECT_THAT(worker(0).BeginUpdate().Wait(), IsOk());
  EXPECT_TRUE(model().ranks()[0].updating);
  EXPECT_FALSE(model().ranks()[1].updating);
}

TEST_F(ModelUpdateTest, BeginWaitsForEarlierOperationsThatReadTheShard) {
  const Pending<GatherResult> gather = worker(0).Gather("root", {"block"});
  const Pending<Nothing> begin = worker(0).BeginUpdate();
  EXPECT_FALSE(begin.answered());
  EXPECT_FALSE(model().ranks()[0].updating);
  ASSERT_THAT(worker(1).Gather("root").Wait(), IsOk());
  EXPECT_FALSE(begin.answered());
  ASSERT_THAT(worker(1).Gather("block").Wait(), IsOk());
  EXPECT_THAT(begin.Wait(), IsOk());
  EXPECT_TRUE(model().ranks()[0].updating);
  EXPECT_THAT(gather.Wait(), IsOk());
}

TEST_F(ModelUpdateTest, BeginWaitsForOperationsThatAreUnderWay) {
  LaunchThreadHold hold(model());
  const Pending<GatherResult> gather = worker(0).Gather("root");
  worker(1).Gather("root");
  const Pending<Nothing> begin = worker(0).BeginUpdate();
  EXPECT_FALSE(model().ranks()[0].updating);
  hold.Release();
  ASSERT_THAT(begin.Wait(), IsOk());
  // In this order: what was gathered is not what is written next.
  EXPECT_TRUE(gather.answered());
}

TEST_F(ModelUpdateTest, ASecondBeginIsRefused) {
  const Pending<GatherResult> gather = worker(0).Gather("root");
  const Pending<Nothing> begin = worker(0).BeginUpdate();
  EXPECT_THAT(worker(0).BeginUpdate().Wait(), FailsWith(StatusCode::kFailedPrecondition, "commit first"));
  worker(0).TakeBack();
  ASSERT_THAT(worker(1).Gather("root").Wait(), IsOk());
  ASSERT_THAT(begin.Wait(), IsOk());
  EXPECT_THAT(worker(0).BeginUpdate().Wait(), FailsWith(StatusCode::kFailedPrecondition, "commit first"));
}

TEST_F(ModelUpdateTest, AStepIsCommittedWhenEveryRankHasCommittedAndNotBefore) {
  const ModelValues next(world_->layout(), 2);
  world_->BeginAll();
  for (const auto& worker : world_->workers()) next.WriteTo(*worker);
  const Pending<Step> first = worker(0).CommitUpdate();
  EXPECT_FALSE(first.answered());
  EXPECT_EQ(model().position().step, Step(0));
  EXPECT_TRUE(model().ranks()[0].updating);
  const Pending<Step> second = worker(1).CommitUpdate();
  ASSERT_THAT(first.Wait(), IsOk());
  ASSERT_THAT(second.Wait(), IsOk());
  EXPECT_EQ(*first.Wait(), Step(1));
  EXPECT_EQ(*second.Wait(), Step(1));
  EXPECT_EQ(model().position().step, Step(1));
  EXPECT_EQ(world_->observer().record().position.step, Step(1));
  for (const auto& worker : world_->workers()) {
    next.ExpectOn(*worker);
    EXPECT_FALSE(model().ranks()[static_cast<size_t>(worker->rank().value())].updating);
    for (const ExportedArena& arena : worker->attachment().arenas) {
      EXPECT_EQ(worker->Header(arena.purpose).step, 1u);
      EXPECT_EQ(worker->Header(arena.purpose).epoch, 1u);
      EXPECT_EQ(worker->Header(arena.purpose).initialized, 1u);
      EXPECT_EQ(worker->Header(arena.purpose).torn, 0u);
    }
  }
}

TEST_F(ModelUpdateTest, AskedAgainACommittedStepIsAnswered) {
  world_->Update(ModelValues(world_->layout(), 2));
  worker(0).step = Step(0);
  const Pending<Step> again = worker(0).CommitUpdate();
  ASSERT_THAT(again.Wait(), IsOk());
  EXPECT_EQ(*again.Wait(), Step(1));
  worker(0).TakeBack();
  EXPECT_EQ(model().position().step, Step(1));
  // It used no number: the next call is in its place.
  worker(0).step = Step(1);
  world_->GatherAll("root");
}

TEST_F(ModelUpdateTest, TheSecondAnswerToAStepFollowsTheWorkOfItsCommit) {
  world_->BeginAll();
  LaunchThreadHold hold(model());
  const Pending<Step> first = worker(0).CommitUpdate(/*ema_step=*/true);
  worker(1).CommitUpdate(/*ema_step=*/true);
  const Pending<Step> again = worker(0).CommitUpdate(/*ema_step=*/true);
  EXPECT_FALSE(again.answered());
  hold.Release();
  ASSERT_THAT(again.Wait(), IsOk());
  EXPECT_TRUE(first.answered());
}

TEST_F(ModelUpdateTest, ACommitWithoutABeginOrOfAnotherStepIsRefused) {
  EXPECT_THAT(worker(0).CommitUpdate().Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "rank 0 has no update to commit; call BeginUpdate first"));
  worker(0).TakeBack();
  ASSERT_THAT(worker(0).BeginUpdate().Wait(), IsOk());
  worker(0).step = Step(1);
  EXPECT_THAT(worker(0).CommitUpdate().Wait(), FailsWith(StatusCode::kFailedPrecondition, "call.step: 1"));
  worker(0).TakeBack();
  worker(0).step = Step(0);
  ASSERT_THAT(worker(1).BeginUpdate().Wait(), IsOk());
  world_->CommitAll();
  EXPECT_EQ(model().position().step, Step(1));
}

TEST_F(ModelUpdateTest, TheTimeOfTheLastCommitIsKept) {
  const absl::Time before = absl::Now();
  world_->Update(ModelValues(world_->layout(), 2));
  ASSERT_TRUE(model().last_commit().has_value());
  EXPECT_GE(*model().last_commit(), before);
  EXPECT_FALSE(ModelWorld(SmallModel(kTwoShards)).model().last_commit().has_value());
}

TEST_F(ModelUpdateTest, InitializingSetsParametersAndEmaCopiesAtStepZero) {
  const ModelPosition position = model().position();
  EXPECT_TRUE(position.initialized);
  EXPECT_EQ(position.step, Step(0));
  const ModelValues values(world_->layout(), 1);
  for (const auto& worker : world_->workers()) {
    values.ExpectOn(*worker);
    for (size_t u = 0; u < world_->layout().units().size(); ++u) {
      const UnitLayout& unit = world_->layout().units()[u];
      for (size_t f = 0; f < unit.flat_parameters.size(); ++f) {
        if (!unit.flat_parameters[f].trainable) continue;
        const std::vector<double> shard = values.Shard(u, f, worker->rank());
        for (size_t e = 0; e < world_->layout().emas().size(); ++e) {
          EXPECT_EQ(BytesOf(worker->Ema(unit.flat_parameters[f], e)),
                    RoundedBytes(shard, world_->layout().emas()[e].dtype));
        }
      }
    }
  }
}

TEST_F(ModelUpdateTest, AModelIsInitializedOnce) {
  EXPECT_THAT(worker(0).BeginUpdate(UpdateKind::kInitialize).Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "model 'small' has parameters already, of step 0"));
}

TEST_F(ModelUpdateTest, AnUninitializedModelTakesFirstValuesOnly) {
  ModelWorld world(SmallModel(kTwoShards));
  world.AttachAll();
  EXPECT_FALSE(world.model().position().initialized);
  EXPECT_THAT(world.worker(0).BeginUpdate().Wait(), FailsWith(StatusCode::kFailedPrecondition, "no parameters yet"));
  world.worker(0).TakeBack();
  EXPECT_THAT(world.worker(0).ReduceScatter("root").Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "no parameters yet"));
  world.worker(0).TakeBack();
  // A worker that dies meanwhile leaves it as it was: there is nothing to go back to.
  ASSERT_THAT(world.worker(0).BeginUpdate(UpdateKind::kInitialize).Wait(), IsOk());
  world.worker(0).Die();
  EXPECT_FALSE(world.model().position().initialized);
  EXPECT_FALSE(world.model().position().torn);
  world.Attach(0);
  ASSERT_THAT(world.worker(1).Rejoin(), IsOk());
  world.Update(ModelValues(world.layout(), 3), UpdateKind::kInitialize);
  EXPECT_TRUE(world.model().position().initialized);
}

TEST_F(ModelUpdateTest, NoShardAndReplicasCommitAlike) {
  for (const MeshShape mesh : {MeshShape{1, 1}, MeshShape{3, 1}, MeshShape{2, 2}}) {
    const auto world = ModelWorld::Initialized(SmallModel(mesh));
    for (uint64_t step = 1; step <= 3; ++step) {
      const ModelValues values(world->layout(), step + 1);
      world->Update(values, UpdateKind::kOptimizer, /*ema_step=*/step % 2 == 0);
      EXPECT_EQ(world->model().position().step, Step(step));
      for (const auto& worker : world->workers()) values.ExpectOn(*worker);
    }
  }
}

}  // namespace
}  // namespace holdfast
