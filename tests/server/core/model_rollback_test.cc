// What becomes of an update whose epoch ends first.
#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

constexpr MeshShape kTwoShards = {.num_replicate = 1, .num_shard = 2};

class ModelRollbackTest : public ::testing::Test {
 protected:
  explicit ModelRollbackTest(v1::UpdateProtection protection = v1::UPDATE_PROTECTION_UNDO_COPY) {
    v1::ModelSpec spec = SmallModel(kTwoShards);
    spec.set_update_protection(protection);
    world_ = ModelWorld::Initialized(spec);
    committed_ = std::make_unique<ModelValues>(world_->layout(), 1);
    written_ = std::make_unique<ModelValues>(world_->layout(), 2);
  }

  TestWorker& worker(int32_t rank) { return world_->worker(rank); }
  Model& model() { return world_->model(); }
  // Opens the update of a rank and writes all that it may.
  void BeginAndWrite(int32_t rank) {
    ASSERT_THAT(worker(rank).BeginUpdate().Wait(), IsOk());
    written_->WriteTo(worker(rank));
  }
  // All ranks go on from the committed step to the next one.
  void ExpectGoesOn() {
    for (const auto& worker : world_->workers()) committed_->ExpectOn(*worker);
    const ModelValues next(world_->layout(), 3);
    world_->Update(next);
    for (const auto& worker : world_->workers()) next.ExpectOn(*worker);
    EXPECT_EQ(model().position().step, Step(1));
  }

  std::unique_ptr<ModelWorld> world_;
  std::unique_ptr<ModelValues> committed_;
  std::unique_ptr<ModelValues> written_;
};

TEST_F(ModelRollbackTest, TheNextWorkerFindsTheCommittedShardsStatesAndBuffers) {
  BeginAndWrite(1);
  worker(1).Die();
  EXPECT_THAT(worker(0).Gather("root").Wait(),
              FailsWith(StatusCode::kAborted, "rank 1 (process 1002) lost its connection at step 0"));
  EXPECT_FALSE(model().position().torn);
  world_->Attach(1);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  ExpectGoesOn();
}

TEST_F(ModelRollbackTest, AWorkerThatHadCommittedIsRolledBackTooUnlessEveryoneHas) {
  BeginAndWrite(0);
  BeginAndWrite(1);
  const Pending<Step> commit = worker(1).CommitUpdate();
  worker(0).Die();
  EXPECT_THAT(commit.Wait(), FailsWith(StatusCode::kAborted, "rank 0"));
  world_->Attach(0);
  ASSERT_THAT(worker(1).Rejoin(), IsOk());
  EXPECT_EQ(worker(1).step, Step(0));
  ExpectGoesOn();
}

TEST_F(ModelRollbackTest, MemoryThatIsStillMappedIsLeftAloneUntilItsProcessIsGone) {
  BeginAndWrite(1);
  worker(1).Disconnect();
  EXPECT_EQ(model().ranks()[1].lease, LeaseState::kMapped);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  written_->ExpectOn(worker(1));
  EXPECT_TRUE(model().ranks()[1].updating);
  EXPECT_THAT(TestWorker::Attach(model(), Rank(1), 999),
              FailsWith(StatusCode::kAlreadyExists, "process 1002 lives and still maps its memory"));
  model().MemoryReturned(worker(1).attachment().memory_token, "died");
  EXPECT_EQ(model().ranks()[1].lease, LeaseState::kFree);
  world_->Attach(1);
  ExpectGoesOn();
}

TEST_F(ModelRollbackTest, TheSameProcessThatAttachesAgainFindsTheCommittedState) {
  BeginAndWrite(1);
  worker(1).Disconnect();
  const absl::StatusOr<std::unique_ptr<TestWorker>> again = TestWorker::Attach(model(), Rank(1), worker(1).pid());
  ASSERT_THAT(again, IsOk());
  committed_->ExpectOn(**again);
  EXPECT_FALSE(model().ranks()[1].updating);
}

TEST_F(ModelRollbackTest, ASurvivorInItsUpdateIsRolledBackWhenItRejoins) {
  BeginAndWrite(0);
  BeginAndWrite(1);
  worker(1).Die();
  world_->Attach(1);
  committed_->ExpectOn(worker(1));
  // Rank 0 may still be writing; nobody takes its shards from it, and nobody may read them.
  written_->ExpectOn(worker(0));
  const Pending<GatherResult> gather = worker(1).Gather("root");
  EXPECT_FALSE(gather.answered());
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  committed_->ExpectOn(worker(0));
  const Pending<GatherResult> peer = worker(0).Gather("root");
  ASSERT_THAT(gather.Wait(), IsOk());
  ASSERT_THAT(peer.Wait(), IsOk());
  committed_->ExpectGathered(worker(1), kRoot, gather.Wait()->unit.slot);
  ExpectGoesOn();
}

TEST_F(ModelRollbackTest, ARejoinGivesTheStepUpOnAllRanks) {
  BeginAndWrite(0);
  ASSERT_THAT(worker(1).BeginUpdate().Wait(), IsOk());
  const Pending<Step> peer = worker(1).CommitUpdate();
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  EXPECT_THAT(peer.Wait(), FailsWith(StatusCode::kAborted, "rank 0 (process 1001) gave up its step"));
  EXPECT_THAT(world_->observer().record().epochs_ended,
              ElementsAre(::testing::Pair(AbortCause::kRejoin, ::testing::HasSubstr("gave up its step"))));
  ASSERT_THAT(worker(1).Rejoin(), IsOk());
  EXPECT_EQ(model().position().epoch, Epoch(2));
  ExpectGoesOn();
}

TEST_F(ModelRollbackTest, ABeginThatWasAnsweredByNobodyIsRolledBackToo) {
  LaunchThreadHold hold(model());
  const Pending<Nothing> begin = worker(1).BeginUpdate();
  EXPECT_FALSE(begin.answered());
  worker(1).Die();
  hold.Release();
  world_->Attach(1);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  ExpectGoesOn();
}

TEST_F(ModelRollbackTest, OnceEveryRankHasArrivedTheStepIsCommittedWhoeverDies) {
  BeginAndWrite(0);
  BeginAndWrite(1);
  LaunchThreadHold hold(model());
  const Pending<Step> survivor = worker(0).CommitUpdate(/*ema_step=*/true);
  worker(1).CommitUpdate(/*ema_step=*/true);
  worker(1).Die();
  EXPECT_EQ(model().position().step, Step(1));
  hold.Release();
  ASSERT_THAT(survivor.Wait(), IsOk());
  EXPECT_EQ(*survivor.Wait(), Step(1));
  world_->Attach(1);
  EXPECT_EQ(worker(1).attachment().position.step, Step(1));
  EXPECT_EQ(worker(1).attachment().position.emas[0].step, Step(1));
  const absl::StatusOr<ModelPosition> position = worker(0).Rejoin();
  ASSERT_THAT(position, IsOk());
  EXPECT_EQ(position->step, Step(1));
  for (const auto& worker : world_->workers()) written_->ExpectOn(*worker);
  world_->Update(ModelValues(world_->layout(), 3));
  EXPECT_EQ(model().position().step, Step(2));
}

TEST_F(ModelRollbackTest, WhatWasLaunchedIsDoneAndAnsweredThoughItsEpochEnds) {
  LaunchThreadHold hold(model());
  const Pending<GatherResult> gather = worker(0).Gather("root");
  worker(1).Gather("root");
  worker(1).Die();
  EXPECT_FALSE(gather.answered());
  hold.Release();
  ASSERT_THAT(gather.Wait(), IsOk());
  committed_->ExpectGathered(worker(0), kRoot, gather.Wait()->unit.slot);
}

TEST_F(ModelRollbackTest, AnUpdateOfTheNextEpochWaitsForWhatIsStillUnderWay) {
  LaunchThreadHold hold(model());
  const Pending<GatherResult> gather = worker(0).Gather("root");
  worker(1).Gather("root");
  worker(1).Die();
  Pending<ModelPosition> rejoin;
  model().Rejoin(worker(0).NextCall(0), rejoin.Callback());
  worker(0).epoch = Epoch(2);
  worker(0).sequence = 0;
  const Pending<Nothing> begin = worker(0).BeginUpdate();
  EXPECT_FALSE(model().ranks()[0].updating);
  hold.Release();
  ASSERT_THAT(begin.Wait(), IsOk());
  EXPECT_TRUE(gather.answered());
  EXPECT_TRUE(rejoin.answered());
}

class UnprotectedModelTest : public ModelRollbackTest {
 protected:
  UnprotectedModelTest() : ModelRollbackTest(v1::UPDATE_PROTECTION_NONE) {}
};

TEST_F(UnprotectedModelTest, ADeathInAnUpdateTearsTheModelUntilItIsInitializedAgain) {
  world_->Update(ModelValues(world_->layout(), 5), UpdateKind::kOptimizer, /*ema_step=*/true);
  BeginAndWrite(1);
  worker(1).Die();
  EXPECT_TRUE(model().position().torn);
  EXPECT_TRUE(world_->observer().record().position.torn);
  EXPECT_EQ(worker(0).Header(v1::MEMORY_PURPOSE_PARAMETERS).torn, 1u);
  world_->Attach(1);
  EXPECT_TRUE(worker(1).attachment().position.torn);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  const auto torn = FailsWith(StatusCode::kFailedPrecondition, "model 'small' is torn");
  EXPECT_THAT(worker(0).Gather("root").Wait(), torn);
  worker(0).TakeBack();
  EXPECT_THAT(worker(0).ReduceScatter("root").Wait(), torn);
  worker(0).TakeBack();
  EXPECT_THAT(worker(0).BeginUpdate().Wait(), torn);
  worker(0).TakeBack();
  EXPECT_THAT(worker(0).EmaStep().Wait(), torn);
  Pending<PulledTensor> pulled, ema;
  model().Pull({.tensor = "embed"}, pulled.Callback());
  EXPECT_THAT(pulled.Wait(), torn);
  // The EMA has been written by nobody.
  model().Pull({.tensor = "embed", .ema = "default"}, ema.Callback());
  ASSERT_THAT(ema.Wait(), IsOk());
  EXPECT_EQ(ema.Wait()->step, Step(1));

  world_->Update(*committed_, UpdateKind::kInitialize);
  EXPECT_FALSE(model().position().torn);
  EXPECT_EQ(model().position().step, Step(1));
  EXPECT_EQ(worker(0).Header(v1::MEMORY_PURPOSE_PARAMETERS).torn, 0u);
  for (const EmaPosition& position : model().position().emas) {
    EXPECT_EQ(position.step, Step(1));
    EXPECT_EQ(position.num_updates, 0u);
  }
  const std::vector<GatherTicket> tickets = world_->GatherAll("root");
  committed_->ExpectGathered(worker(0), kRoot, tickets[0].slot);
}

TEST_F(UnprotectedModelTest, ADeathOutsideAnUpdateTearsNothing) {
  worker(1).Die();
  EXPECT_FALSE(model().position().torn);
  world_->Attach(1);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  ExpectGoesOn();
}

TEST_F(UnprotectedModelTest, ADeathInTheFirstUpdateLeavesNoEmaToPull) {
  v1::ModelSpec spec = world_->layout().spec();
  ModelWorld world(spec);
  world.AttachAll();
  ASSERT_THAT(world.worker(0).BeginUpdate(UpdateKind::kInitialize).Wait(), IsOk());
  world.worker(0).Die();
  Pending<PulledTensor> ema;
  world.model().Pull({.tensor = "embed", .ema = "default"}, ema.Callback());
  EXPECT_THAT(ema.Wait(), FailsWith(StatusCode::kFailedPrecondition, "model 'small'"));
  world.Attach(0);
  ASSERT_THAT(world.worker(1).Rejoin(), IsOk());
  world.Update(*committed_, UpdateKind::kInitialize);
  EXPECT_FALSE(world.model().position().torn);
}

}  // namespace
}  // namespace holdfast
