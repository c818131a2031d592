// Gather: what is delivered, what a hit is, and how calls that come out of turn are taken.
#include <tuple>
#include <vector>

#include "common/futex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr MeshShape kTwoShards = {.num_replicate = 1, .num_shard = 2};

WaitResult Poll(const TestWorker& worker, const GatherTicket& ticket) {
  return PollCompletion(worker.Header(v1::MEMORY_PURPOSE_GATHER_SLOTS).words[ticket.slot], ticket.completion);
}

class GatherOnEveryMeshTest : public ::testing::TestWithParam<std::tuple<MeshShape, v1::DataType>> {};

TEST_P(GatherOnEveryMeshTest, GatherDeliversEveryUnitToEveryRankInTheParamDtype) {
  v1::ModelSpec spec = SmallModel(std::get<0>(GetParam()));
  spec.mutable_precision()->set_param(std::get<1>(GetParam()));
  const auto world = ModelWorld::Initialized(spec);
  const ModelValues values(world->layout(), 1);
  for (int32_t unit = 0; unit < static_cast<int32_t>(world->layout().units().size()); ++unit) {
    const std::string& name = world->layout().unit(UnitIndex(unit)).name;
    const std::vector<GatherTicket> tickets = world->GatherAll(name);
    for (int32_t rank = 0; rank < world->num_ranks(); ++rank) {
      const GatherTicket& ticket = tickets[static_cast<size_t>(rank)];
      EXPECT_EQ(ticket.unit, UnitIndex(unit));
      EXPECT_FALSE(ticket.hit);
      EXPECT_EQ(Poll(world->worker(rank), ticket), WaitResult::kDone);
      values.ExpectGathered(world->worker(rank), UnitIndex(unit), ticket.slot);
      ASSERT_THAT(world->worker(rank).Release({name}), IsOk());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, GatherOnEveryMeshTest,
                         ::testing::Combine(::testing::Values(MeshShape{1, 1}, MeshShape{1, 2}, MeshShape{1, 3},
                                                              MeshShape{2, 2}, MeshShape{3, 1}, MeshShape{2, 3},
                                                              MeshShape{4, 2}, MeshShape{1, 8}),
                                            ::testing::Values(v1::DATA_TYPE_BFLOAT16, v1::DATA_TYPE_FLOAT32)),
                         [](const auto& info) {
                           const MeshShape& mesh = std::get<0>(info.param);
                           return absl::StrCat(
                               mesh.num_replicate, "x", mesh.num_shard,
                               std::get<1>(info.param) == v1::DATA_TYPE_FLOAT32 ? "_float32" : "_bfloat16");
                         });

class ModelGatherTest : public ::testing::Test {
 protected:
  TestWorker& worker(int32_t rank) { return world_->worker(rank); }
  uint64_t NextSequence(int32_t rank) { return world_->model().ranks()[static_cast<size_t>(rank)].sequence.value(); }

  std::unique_ptr<ModelWorld> world_ = ModelWorld::Initialized(SmallModel(kTwoShards));
  const ModelValues values_{world_->layout(), 1};
  // Of every rank, after its first update.
  const uint64_t first_ = NextSequence(0);
};

TEST_F(ModelGatherTest, AHitIsAnsweredAtOnceAndMovesNoByte) {
  const std::vector<GatherTicket> first = world_->GatherAll("block");
  const int64_t moved = world_->observer().record().gathered_bytes;
  LaunchThreadHold hold(world_->model());
  for (int32_t rank = 0; rank < 2; ++rank) {
    // Neither the peer nor the launch thread is waited for.
    const Pending<GatherResult> again = worker(rank).Gather("block");
    ASSERT_TRUE(again.answered());
    EXPECT_TRUE(again.Wait()->unit.hit);
    EXPECT_EQ(again.Wait()->unit.slot, first[static_cast<size_t>(rank)].slot);
    EXPECT_EQ(again.Wait()->unit.completion, first[static_cast<size_t>(rank)].completion);
  }
  hold.Release();
  world_->GatherAll("block");
  EXPECT_EQ(world_->observer().record().gathered_bytes, moved);
  EXPECT_EQ(world_->observer().record().hits, 4);
  EXPECT_EQ(world_->observer().record().misses, 2);
}

TEST_F(ModelGatherTest, TheAnswerDoesNotWaitForWhatIsPrefetched) {
  const Pending<GatherResult> ahead = worker(0).Gather("root", {"block", "tiny"});
  const Pending<GatherResult> behind = worker(1).Gather("root");
  ASSERT_THAT(ahead.Wait(), IsOk());
  ASSERT_THAT(behind.Wait(), IsOk());
  ASSERT_EQ(ahead.Wait()->prefetch.size(), 2u);
  const GatherTicket block = ahead.Wait()->prefetch[0], tiny = ahead.Wait()->prefetch[1];
  EXPECT_EQ(block.unit, kBlock);
  EXPECT_FALSE(block.hit);
  EXPECT_EQ(Poll(worker(0), block), WaitResult::kTimeout);
  EXPECT_EQ(Poll(worker(0), tiny), WaitResult::kTimeout);

  ASSERT_THAT(worker(1).Gather("block", {"tiny"}).Wait(), IsOk());
  for (const GatherTicket& ticket : {block, tiny}) {
    EXPECT_EQ(WaitForCompletion(worker(0).Header(v1::MEMORY_PURPOSE_GATHER_SLOTS).words[ticket.slot], ticket.completion,
                                absl::InfiniteFuture()),
              WaitResult::kDone);
    values_.ExpectGathered(worker(0), ticket.unit, ticket.slot);
  }
}

TEST_F(ModelGatherTest, AUnitOnItsWayIsAHitThatIsAnsweredWhenItIsThere) {
  const Pending<GatherResult> first = worker(0).Gather("root", {"block"});
  ASSERT_THAT(worker(1).Gather("root").Wait(), IsOk());
  const GatherTicket prefetched = first.Wait()->prefetch[0];
  const Pending<GatherResult> wanted = worker(0).Gather("block");
  EXPECT_FALSE(wanted.answered());
  // The peer makes the call that the prefetch waits for, not yet the one that follows.
  const Pending<GatherResult> peer = worker(1).Gather("block");
  ASSERT_THAT(wanted.Wait(), IsOk());
  EXPECT_TRUE(wanted.Wait()->unit.hit);
  EXPECT_EQ(wanted.Wait()->unit.completion, prefetched.completion);
  EXPECT_EQ(wanted.Wait()->unit.slot, prefetched.slot);
  values_.ExpectGathered(worker(0), kBlock, prefetched.slot);
  EXPECT_THAT(peer.Wait(), IsOk());
}

TEST_F(ModelGatherTest, WhatItsEpochDidNotCompleteIsVoid) {
  const Pending<GatherResult> first = worker(0).Gather("root", {"block"});
  ASSERT_THAT(worker(1).Gather("root").Wait(), IsOk());
  const GatherTicket root = first.Wait()->unit, block = first.Wait()->prefetch[0];
  const Pending<GatherResult> waits = worker(0).Gather("block");
  worker(1).Die();
  EXPECT_THAT(waits.Wait(), FailsWith(StatusCode::kAborted, "rank 1"));
  const CompletionWord& word = worker(0).Header(v1::MEMORY_PURPOSE_GATHER_SLOTS).words[block.slot];
  EXPECT_EQ(WaitForCompletion(word, block.completion, absl::InfiniteFuture()), WaitResult::kVoid);
  EXPECT_EQ(word, VoidValue(block.completion));
  // What was complete stays, and is found in the next epoch.
  EXPECT_EQ(Poll(worker(0), root), WaitResult::kDone);
  world_->Attach(1);
  EXPECT_THAT(worker(1).attachment().position.resident_units, ElementsAre("root"));
  const absl::StatusOr<ModelPosition> rejoined = worker(0).Rejoin();
  ASSERT_THAT(rejoined, IsOk());
  EXPECT_THAT(rejoined->resident_units, ElementsAre("root"));
  EXPECT_TRUE(world_->GatherAll("root")[0].hit);
  const std::vector<GatherTicket> again = world_->GatherAll("block");
  EXPECT_FALSE(again[0].hit);
  values_.ExpectGathered(worker(0), kBlock, again[0].slot);
}

TEST_F(ModelGatherTest, WithoutAFreeSlotNothingIsStarted) {
  for (const char* unit : {"root", "block"}) world_->GatherAll(unit);
  const Pending<GatherResult> refused = worker(0).Gather("tiny", {"head"});
  EXPECT_THAT(refused.Wait(), FailsWith(StatusCode::kResourceExhausted,
                                        "2 gather slots are needed, 1 are free: the 3 slots hold 'root', 'block', ''"));
  worker(0).TakeBack(2);
  EXPECT_EQ(NextSequence(0), first_ + 2);
  // With one given back in the same call there is room.
  std::vector<Pending<GatherResult>> gathers;
  for (int32_t rank = 0; rank < 2; ++rank) gathers.push_back(worker(rank).Gather("tiny", {"head"}, {"root"}));
  for (const Pending<GatherResult>& gather : gathers) EXPECT_THAT(gather.Wait(), IsOk());
}

TEST_F(ModelGatherTest, ARefusedGatherReleasesNothing) {
  for (const char* unit : {"root", "block", "tiny"}) world_->GatherAll(unit);
  EXPECT_THAT(worker(0).Gather("head", {"table"}, {"root"}).Wait(), FailsWith(StatusCode::kResourceExhausted, "1 are"));
  worker(0).TakeBack(2);
  EXPECT_THAT(worker(0).Gather("head").Wait(), FailsWith(StatusCode::kResourceExhausted, "0 are free"));
}

TEST_F(ModelGatherTest, AReleasedUnitIsAHitUntilItsSlotIsNeeded) {
  for (const char* unit : {"root", "block", "tiny"}) world_->GatherAll(unit);
  for (int32_t rank = 0; rank < 2; ++rank) ASSERT_THAT(worker(rank).Release({"root", "block", "head"}), IsOk());
  const std::vector<GatherTicket> root = world_->GatherAll("root");
  EXPECT_TRUE(root[0].hit);
  // "block" is now the one that has been out of use for longest.
  const std::vector<GatherTicket> head = world_->GatherAll("head");
  EXPECT_FALSE(head[0].hit);
  values_.ExpectGathered(worker(0), kRoot, root[0].slot);
  EXPECT_THAT(worker(0).Gather("block").Wait(), FailsWith(StatusCode::kResourceExhausted, "'root', 'head', 'tiny'"));
}

TEST_F(ModelGatherTest, AReleaseWithAnUnknownUnitReleasesNothing) {
  for (const char* unit : {"root", "block", "tiny"}) world_->GatherAll(unit);
  EXPECT_THAT(worker(0).Release({"root", "nope"}), FailsWith(StatusCode::kNotFound, "nope"));
  EXPECT_THAT(worker(0).Gather("head").Wait(), FailsWith(StatusCode::kResourceExhausted, "0 are free"));
}

TEST_F(ModelGatherTest, ACommitFreesEverySlotAndMakesCopiesVoid) {
  for (const char* unit : {"root", "block", "tiny"}) world_->GatherAll(unit);
  const ModelValues next(world_->layout(), 2);
  world_->Update(next);
  for (const char* unit : {"head", "block", "root"}) {
    const std::vector<GatherTicket> tickets = world_->GatherAll(unit);
    EXPECT_FALSE(tickets[0].hit);
    for (int32_t rank = 0; rank < 2; ++rank) {
      next.ExpectGathered(worker(rank), tickets[static_cast<size_t>(rank)].unit,
                          tickets[static_cast<size_t>(rank)].slot);
    }
  }
}

TEST_F(ModelGatherTest, AReleaseThatACommitHasOvertakenDoesNothing) {
  const CallContext late = worker(0).NextCall(0);
  world_->Update(ModelValues(world_->layout(), 2));
  for (const char* unit : {"root", "block", "tiny"}) world_->GatherAll(unit);
  EXPECT_THAT(world_->model().Release(late, {"root"}), IsOk());
  EXPECT_THAT(worker(0).Gather("head").Wait(), FailsWith(StatusCode::kResourceExhausted, "0 are free"));
  CallContext early = late;
  early.step = Step(9);
  EXPECT_THAT(world_->model().Release(early, {"root"}), FailsWith(StatusCode::kFailedPrecondition, "call.step: 9"));
}

TEST_F(ModelGatherTest, ARankThatMissesIsServedWhileOthersHit) {
  for (const char* unit : {"root", "block", "tiny"}) world_->GatherAll(unit);
  ASSERT_THAT(worker(0).Release({"block"}), IsOk());
  ASSERT_THAT(worker(1).Release({"root"}), IsOk());
  world_->GatherAll("head");
  ASSERT_THAT(worker(0).Release({"tiny"}), IsOk());
  const int64_t moved = world_->observer().record().gathered_bytes;
  const std::vector<GatherTicket> block = world_->GatherAll("block");
  EXPECT_FALSE(block[0].hit);
  EXPECT_TRUE(block[1].hit);
  for (int32_t rank = 0; rank < 2; ++rank) {
    values_.ExpectGathered(worker(rank), kBlock, block[static_cast<size_t>(rank)].slot);
  }
  int64_t of_one_rank = 0;
  for (const FlatParameter& flat : world_->layout().unit(kBlock).flat_parameters) {
    of_one_rank += flat.padded_elements(2) * SizeOf(flat.param_dtype);
  }
  EXPECT_EQ(world_->observer().record().gathered_bytes - moved, of_one_rank);
}

TEST_F(ModelGatherTest, CallsOfARankThatOvertakeOneAnotherAreTakenInTurn) {
  const CallContext first = worker(0).NextCall(1), second = worker(0).NextCall(2), third = worker(0).NextCall(1);
  Pending<GatherResult> tiny, block, root;
  world_->model().Gather({.context = third, .unit = "tiny"}, tiny.Callback());
  world_->model().Gather({.context = second, .unit = "block", .prefetch = {"tiny"}}, block.Callback());
  EXPECT_EQ(NextSequence(0), first_);
  EXPECT_FALSE(block.answered());
  world_->model().Gather({.context = first, .unit = "root"}, root.Callback());
  EXPECT_EQ(NextSequence(0), first_ + 4);
  for (const char* unit : {"root", "block", "tiny", "tiny"}) ASSERT_THAT(worker(1).Gather(unit).Wait(), IsOk());
  ASSERT_THAT(root.Wait(), IsOk());
  ASSERT_THAT(block.Wait(), IsOk());
  ASSERT_THAT(tiny.Wait(), IsOk());
  EXPECT_TRUE(tiny.Wait()->unit.hit);
  values_.ExpectGathered(worker(0), kBlock, block.Wait()->unit.slot);
}

TEST_F(ModelGatherTest, ANumberThatIsUsedIsRefused) {
  world_->GatherAll("root");
  const auto gather = [this](uint64_t sequence, const std::vector<std::string>& prefetch = {}) {
    worker(0).sequence = first_ + sequence;
    return worker(0).Gather("block", prefetch);
  };
  EXPECT_THAT(gather(0).Wait(), FailsWith(StatusCode::kFailedPrecondition,
                                          "call.sequence: 2 has been used by rank 0 in epoch 1; its next one is 3"));
  // One that waits for its turn has its number, too; and so have the units that it prefetches.
  const Pending<GatherResult> waits = gather(2, {"tiny"});
  EXPECT_THAT(gather(2).Wait(), FailsWith(StatusCode::kFailedPrecondition, "call.sequence: 4 has been used"));
  const Pending<GatherResult> within = gather(3);
  const Pending<GatherResult> fills = gather(1);
  EXPECT_THAT(within.Wait(), FailsWith(StatusCode::kFailedPrecondition, "call.sequence: 5 has been used by rank 0"));
  worker(1).Gather("block");
  ASSERT_THAT(worker(1).Gather("block", {"tiny"}).Wait(), IsOk());
  EXPECT_THAT(fills.Wait(), IsOk());
  EXPECT_THAT(waits.Wait(), IsOk());
}

TEST_F(ModelGatherTest, ANumberFarAheadIsRefused) {
  for (const uint64_t sequence : {first_ + CollectiveGate::kWindow, UINT64_MAX}) {
    worker(0).sequence = sequence;
    EXPECT_THAT(worker(0).Gather("root").Wait(), FailsWith(StatusCode::kResourceExhausted, "calls ahead"));
  }
  worker(0).sequence = first_;
  const std::vector<std::string> many(CollectiveGate::kWindow, "block");
  EXPECT_THAT(worker(0).Gather("root", many).Wait(), FailsWith(StatusCode::kResourceExhausted, "calls ahead"));
  worker(0).sequence = first_;
  EXPECT_FALSE(world_->GatherAll("root")[0].hit);
}

TEST_F(ModelGatherTest, BadCallsAreRefusedAndUseNoNumber) {
  EXPECT_THAT(worker(0).Gather("nope").Wait(), FailsWith(StatusCode::kNotFound, "nope"));
  worker(0).TakeBack();
  EXPECT_THAT(worker(0).Gather("root", {"nope"}).Wait(), FailsWith(StatusCode::kNotFound, "nope"));
  worker(0).TakeBack(2);
  EXPECT_THAT(worker(0).Gather("root", {}, {"nope"}).Wait(), FailsWith(StatusCode::kNotFound, "nope"));
  worker(0).TakeBack();
  EXPECT_THAT(worker(0).Gather("root", {"block", "root"}).Wait(),
              FailsWith(StatusCode::kInvalidArgument, "unit 'root' is named twice"));
  worker(0).TakeBack(3);
  worker(0).step = Step(1);
  EXPECT_THAT(worker(0).Gather("root").Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "call.step: 1, but model 'small' is at step 0"));
  worker(0).TakeBack();
  worker(0).step = Step(0);
  EXPECT_EQ(NextSequence(0), first_);
  world_->GatherAll("root");
}

TEST_F(ModelGatherTest, ARankInItsUpdateGathersNothing) {
  const Pending<GatherResult> pending = worker(0).Gather("root");
  const Pending<Nothing> begin = worker(0).BeginUpdate();
  // Waiting for the gather, and so as good as begun.
  EXPECT_THAT(worker(0).Gather("block").Wait(), FailsWith(StatusCode::kFailedPrecondition, "commit first"));
  worker(0).TakeBack();
  ASSERT_THAT(worker(1).Gather("root").Wait(), IsOk());
  ASSERT_THAT(begin.Wait(), IsOk());
  EXPECT_THAT(worker(0).Gather("block").Wait(), FailsWith(StatusCode::kFailedPrecondition, "commit first"));
  EXPECT_THAT(pending.Wait(), IsOk());
}

TEST_F(ModelGatherTest, AModelWithoutParametersGathersNothing) {
  ModelWorld world(SmallModel(kTwoShards));
  world.AttachAll();
  EXPECT_THAT(world.worker(0).Gather("root").Wait(), FailsWith(StatusCode::kFailedPrecondition, "no parameters yet"));
}

}  // namespace
}  // namespace holdfast
