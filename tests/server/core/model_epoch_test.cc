// Epochs: how ranks that disagree are found, how an ended epoch is fenced off, who is told, and who waits how long.
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr MeshShape kThreeShards = {.num_replicate = 1, .num_shard = 3};

// A call of one worker, and what its answer is.
using Call = std::function<std::function<absl::Status()>(TestWorker&)>;

template <typename T>
std::function<absl::Status()> StatusIn(const Pending<T>& pending) {
  return [pending] { return pending.Wait().status(); };
}

struct Disagreement {
  std::string name;
  Call first;
  std::string first_text;
  Call second;
  std::string second_text;
  // What all ranks do before it.
  std::function<void(ModelWorld&)> prepare = [](ModelWorld&) {};

  friend void PrintTo(const Disagreement& disagreement, std::ostream* out) { *out << disagreement.name; }
};

Call GatherOf(const std::string& unit) {
  return [unit](TestWorker& worker) { return StatusIn(worker.Gather(unit)); };
}
Call ReduceOf(const std::string& unit, bool accumulate = false) {
  return [=](TestWorker& worker) { return StatusIn(worker.ReduceScatter(unit, 0, accumulate)); };
}
Call Begin() {
  return [](TestWorker& worker) { return StatusIn(worker.BeginUpdate()); };
}
Call Commit(bool ema_step) {
  return [ema_step](TestWorker& worker) { return StatusIn(worker.CommitUpdate(ema_step)); };
}

std::vector<Disagreement> Disagreements() {
  const auto begin_all = [](ModelWorld& world) { world.BeginAll(); };
  const auto reduce_all = [](ModelWorld& world) {
    std::vector<Pending<Nothing>> reductions;
    for (const auto& worker : world.workers()) reductions.push_back(worker->ReduceScatter("block"));
    for (const auto& pending : reductions) ASSERT_THAT(pending.Wait(), IsOk());
  };
  return {
      {"OtherUnit", GatherOf("root"), "Gather of unit 'root'", GatherOf("block"), "Gather of unit 'block'"},
      {"OtherUnitReduced", ReduceOf("root"), "ReduceScatter of unit 'root'", ReduceOf("block"),
       "ReduceScatter of unit 'block'"},
      {"OtherKind", GatherOf("root"), "Gather of unit 'root'", ReduceOf("root"), "ReduceScatter of unit 'root'"},
      {"OtherAccumulate", ReduceOf("block"), "ReduceScatter of unit 'block',", ReduceOf("block", true),
       "ReduceScatter of unit 'block' with accumulate", reduce_all},
      {"GatherAgainstUpdate", GatherOf("root"), "Gather of unit 'root'", Begin(), "BeginUpdate"},
      {"OtherEmaStep", Commit(true), "CommitUpdate with ema_step", Commit(false), "CommitUpdate;", begin_all},
  };
}

class DesyncTest : public ::testing::TestWithParam<Disagreement> {};

TEST_P(DesyncTest, IsAnsweredOnAllRanksAtOnceNamingBothSides) {
  const Disagreement& disagreement = GetParam();
  const auto world = ModelWorld::Initialized(SmallModel(kThreeShards));
  disagreement.prepare(*world);
  const uint64_t sequence = world->worker(0).sequence;
  const auto first = disagreement.first(world->worker(1));
  const auto second = disagreement.first(world->worker(2));
  const auto wrong = disagreement.second(world->worker(0));
  const std::string sides = absl::StrCat("ranks disagree at sequence ", sequence,
                                         " of epoch 1 of model 'small': rank 1 asks for ", disagreement.first_text);
  for (const auto& answer : {first, second, wrong}) {
    EXPECT_THAT(answer(), FailsWith(StatusCode::kFailedPrecondition, sides));
    EXPECT_THAT(answer(), FailsWith(StatusCode::kFailedPrecondition, "rank 0 for " + disagreement.second_text));
  }
  EXPECT_EQ(world->model().position().epoch, Epoch(2));
  EXPECT_THAT(world->observer().record().epochs_ended, ElementsAre(Pair(AbortCause::kDesync, HasSubstr(sides))));
  // Whoever comes later hears the same.
  EXPECT_THAT(world->worker(1).Gather("root").Wait(), FailsWith(StatusCode::kFailedPrecondition, sides));
  world->RejoinAll();
  world->GatherAll("root");
}

INSTANTIATE_TEST_SUITE_P(All, DesyncTest, ::testing::ValuesIn(Disagreements()),
                         [](const auto& info) { return info.param.name; });

TEST(DesyncInFirstUpdateTest, AnInitializationAgainstAnotherCallIsFoundToo) {
  ModelWorld world(SmallModel({.num_replicate = 1, .num_shard = 2}));
  world.AttachAll();
  ASSERT_THAT(world.worker(0).BeginUpdate(UpdateKind::kInitialize).Wait(), IsOk());
  const Pending<Step> commit = world.worker(0).CommitUpdate();
  ASSERT_THAT(world.worker(1).BeginUpdate(UpdateKind::kInitialize).Wait(), IsOk());
  EXPECT_THAT(world.worker(1).CommitUpdate(/*ema_step=*/true).Wait(),
              FailsWith(StatusCode::kFailedPrecondition, "rank 0 asks for CommitUpdate to initialise, rank 1 for"));
  EXPECT_THAT(commit.Wait(), FailsWith(StatusCode::kFailedPrecondition, "CommitUpdate to initialise with ema_step"));
}

class ModelEpochTest : public ::testing::Test {
 protected:
  TestWorker& worker(int32_t rank) { return world_->worker(rank); }
  Model& model() { return world_->model(); }

  std::unique_ptr<ModelWorld> world_ = ModelWorld::Initialized(SmallModel(kThreeShards));
};

TEST_F(ModelEpochTest, CallsOfEndedEpochsAreFencedOff) {
  worker(2).Die();
  const auto answer = [this] { return worker(0).Gather("root").Wait().status(); };
  EXPECT_THAT(answer(), FailsWith(StatusCode::kAborted, "rank 2 (process 1003) lost its connection at step 0"));
  EXPECT_THAT(worker(0).Release({"root"}), FailsWith(StatusCode::kAborted, "rank 2"));
  EXPECT_THAT(worker(0).BeginUpdate().Wait(), FailsWith(StatusCode::kAborted, "rank 2"));
  worker(0).epoch = Epoch(2);
  EXPECT_THAT(answer(), FailsWith(StatusCode::kFailedPrecondition, "rank 0 has not entered epoch 2; call Rejoin"));
  worker(0).epoch = Epoch(3);
  EXPECT_THAT(answer(), FailsWith(StatusCode::kInvalidArgument, "call.epoch: 3 was never an epoch"));
  worker(0).epoch = Epoch(0);
  EXPECT_THAT(answer(), FailsWith(StatusCode::kInvalidArgument, "call.epoch: 0 was never an epoch"));
  worker(1).Die();
  worker(0).epoch = Epoch(1);
  EXPECT_THAT(answer(), FailsWith(StatusCode::kAborted, "epoch 1 of model 'small' has ended; it is at 3"));
  world_->Attach(1);
  world_->Attach(2);
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  world_->GatherAll("root");
}

TEST_F(ModelEpochTest, ACallWithoutALeaseIsAborted) {
  worker(1).Die();
  for (const absl::Status& status :
       {worker(1).Gather("root").Wait().status(), worker(1).Release({}),
        worker(1).ReduceScatter("root").Wait().status(), worker(1).BeginUpdate().Wait().status(),
        worker(1).CommitUpdate().Wait().status(), worker(1).EmaStep().Wait().status(), worker(1).Rejoin().status()}) {
    EXPECT_THAT(status, FailsWith(StatusCode::kAborted, "is not held"));
  }
}

TEST_F(ModelEpochTest, TheLostLeaseAndItsPeersAreTold) {
  worker(1).Die();
  for (const int32_t rank : {0, 2}) {
    const std::vector<GroupEvent> events = worker(rank).listener().events();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].epoch, Epoch(2));
    EXPECT_THAT(events[0].reason, HasSubstr("rank 1 (process 1002) lost its connection"));
    EXPECT_FALSE(events[0].draining);
    EXPECT_THAT(worker(rank).listener().revoked(), IsEmpty());
  }
  EXPECT_THAT(worker(1).listener().events(), IsEmpty());
  ASSERT_EQ(worker(1).listener().revoked().size(), 1u);
  EXPECT_THAT(worker(1).listener().revoked()[0], FailsWith(StatusCode::kAborted, "lost its connection"));
  const Record record = world_->observer().record();
  EXPECT_THAT(record.leases_ended, ElementsAre(Pair(Rank(1), "lost its connection")));
  EXPECT_THAT(record.epochs_ended, ElementsAre(Pair(AbortCause::kLeaseLost, HasSubstr("rank 1"))));
  // Twice is once.
  worker(1).Die();
  EXPECT_EQ(model().position().epoch, Epoch(2));
}

TEST_F(ModelEpochTest, LeasesAreSeenAsFreeHeldAndMapped) {
  EXPECT_THAT(world_->observer().record().leases, ElementsAre(0, 3, 0));
  worker(1).Disconnect();
  EXPECT_THAT(world_->observer().record().leases, ElementsAre(0, 2, 1));
  EXPECT_EQ(model().NumLeases(), 2);
  EXPECT_EQ(model().ranks()[1].lease, LeaseState::kMapped);
  EXPECT_EQ(model().ranks()[1].pid, 1002);
  model().MemoryReturned(worker(1).attachment().memory_token, "died");
  EXPECT_THAT(world_->observer().record().leases, ElementsAre(1, 2, 0));
  EXPECT_EQ(model().ranks()[1].pid, 0);
  EXPECT_FALSE(model().HasToken(worker(1).attachment().memory_token));
  world_->Attach(1);
  EXPECT_THAT(world_->observer().record().leases, ElementsAre(0, 3, 0));
  EXPECT_EQ(world_->observer().record().leases_taken.back(), std::make_pair(Rank(1), worker(1).pid()));
}

TEST_F(ModelEpochTest, AnOldMappingThatIsGivenBackLateEndsNothing) {
  worker(1).Disconnect();
  const absl::StatusOr<std::unique_ptr<TestWorker>> again = TestWorker::Attach(model(), Rank(1), worker(1).pid());
  ASSERT_THAT(again, IsOk());
  const Epoch epoch = model().position().epoch;
  EXPECT_TRUE(model().HasToken(worker(1).attachment().memory_token));
  model().MemoryReturned(worker(1).attachment().memory_token, "gave its memory back");
  EXPECT_EQ(model().position().epoch, epoch);
  EXPECT_EQ(model().ranks()[1].lease, LeaseState::kHeld);
  EXPECT_THAT((*again)->listener().revoked(), IsEmpty());
}

TEST_F(ModelEpochTest, ARejoinWithNothingToGiveUpEndsNoEpoch) {
  ASSERT_THAT(worker(1).Rejoin(), IsOk());
  EXPECT_EQ(model().position().epoch, Epoch(2));
  // Rank 1 had made the calls of its first update; the others had not rejoined since.
  ASSERT_THAT(worker(1).Rejoin(), IsOk());
  ASSERT_THAT(worker(0).Rejoin(), IsOk());
  ASSERT_THAT(worker(2).Rejoin(), IsOk());
  EXPECT_EQ(model().position().epoch, Epoch(2));
  world_->GatherAll("root");
}

TEST_F(ModelEpochTest, ACancelledCallIsAnsweredAndItsOperationGoesOn) {
  CallContext context = worker(0).NextCall();
  Pending<GatherResult> gather;
  model().Gather({.context = context, .unit = "block"}, gather.Callback());
  model().CancelCall(CallId(1), absl::CancelledError("somebody else"));
  EXPECT_FALSE(gather.answered());
  model().CancelCall(context.id, absl::CancelledError("gone"));
  ASSERT_TRUE(gather.answered());
  EXPECT_THAT(gather.Wait(), FailsWith(StatusCode::kCancelled, "gone"));
  for (const int32_t rank : {1, 2}) worker(rank).Gather("block");
  const std::vector<GatherTicket> tickets = world_->GatherAll("block");
  EXPECT_TRUE(tickets[0].hit);
  ModelValues(world_->layout(), 1).ExpectGathered(worker(0), kBlock, tickets[0].slot);
}

TEST_F(ModelEpochTest, ACallThatWaitsForItsTurnIsCancelledWithoutUsingItsNumber) {
  const CallContext first = worker(0).NextCall(), second = worker(0).NextCall();
  Pending<GatherResult> early, again, root;
  model().Gather({.context = second, .unit = "block"}, early.Callback());
  model().CancelCall(second.id, absl::CancelledError("gone"));
  EXPECT_THAT(early.Wait(), FailsWith(StatusCode::kCancelled, "gone"));
  model().Gather({.context = second, .unit = "block"}, again.Callback());
  model().Gather({.context = first, .unit = "root"}, root.Callback());
  for (const char* unit : {"root", "block"}) {
    for (const int32_t rank : {1, 2}) worker(rank).Gather(unit);
  }
  EXPECT_THAT(root.Wait(), IsOk());
  EXPECT_THAT(again.Wait(), IsOk());
}

TEST_F(ModelEpochTest, ACancelledBeginOpensNoUpdate) {
  worker(0).Gather("root");
  const CallContext context = worker(0).NextCall();
  Pending<Nothing> begin;
  model().BeginUpdate(context, UpdateKind::kOptimizer, begin.Callback());
  model().CancelCall(context.id, absl::CancelledError("gone"));
  EXPECT_THAT(begin.Wait(), FailsWith(StatusCode::kCancelled, "gone"));
  for (const int32_t rank : {1, 2}) worker(rank).Gather("root");
  EXPECT_THAT(worker(0).CommitUpdate().Wait(), FailsWith(StatusCode::kFailedPrecondition, "no update to commit"));
  EXPECT_FALSE(model().ranks()[0].updating);
}

TEST_F(ModelEpochTest, AnOperationThatFailsEndsItsEpochForAllRanks) {
  const Pending<GatherResult> first = worker(0).Gather("root", {"block"}), second = worker(1).Gather("root");
  world_->collectives().Abort(absl::UnavailableError("node 1 is gone"));
  const auto failed = FailsWith(StatusCode::kUnavailable, "node 1 is gone");
  EXPECT_THAT(worker(2).Gather("root").Wait(), failed);
  EXPECT_THAT(first.Wait(), failed);
  EXPECT_THAT(second.Wait(), failed);
  // The epoch had ended when the answers came.
  EXPECT_THAT(world_->observer().record().epochs_ended,
              ElementsAre(Pair(AbortCause::kDeviceError, HasSubstr("node 1 is gone"))));
  EXPECT_THAT(worker(0).Gather("tiny").Wait(), failed);
  const absl::StatusOr<ModelPosition> position = worker(0).Rejoin();
  ASSERT_THAT(position, IsOk());
  EXPECT_EQ(position->epoch, Epoch(2));
  EXPECT_EQ(position->step, Step(0));
  EXPECT_THAT(position->resident_units, IsEmpty());
  // Both slots have been given up as void, and are free.
  int num_void = 0;
  for (size_t slot = 0; slot < 3; ++slot) {
    num_void += static_cast<int>(worker(0).Header(v1::MEMORY_PURPOSE_GATHER_SLOTS).words[slot] % 2);
  }
  EXPECT_EQ(num_void, 2);
}

class ModelDeadlineTest : public ::testing::Test {
 protected:
  // Ranks 0 and 1 have a worker, rank 2 has none. While all three had one, nobody waited for anybody.
  ModelDeadlineTest() {
    world_ = ModelWorld::Initialized(SmallModel(kThreeShards), /*collective_timeout=*/absl::Milliseconds(500));
    world_->worker(2).Die();
    for (const int32_t rank : {0, 1}) EXPECT_THAT(world_->worker(rank).Rejoin(), IsOk());
  }
  TestWorker& worker(int32_t rank) { return world_->worker(rank); }

  std::unique_ptr<ModelWorld> world_;
};

TEST_F(ModelDeadlineTest, PeersThatAreLateAreNamed) {
  const Pending<GatherResult> gather = worker(0).Gather("root");
  const Pending<Nothing> reduction = worker(0).ReduceScatter("root");
  const auto late = FailsWith(StatusCode::kDeadlineExceeded, "for rank 1 (process 1002, at 0), rank 2 (no worker)");
  EXPECT_THAT(gather.Wait(), late);
  EXPECT_THAT(reduction.Wait(), late);
  EXPECT_EQ(world_->model().position().epoch, Epoch(2));
}

TEST_F(ModelDeadlineTest, ABeginNamesThoseWhoseCallsItWaitsFor) {
  worker(0).Gather("root");
  EXPECT_THAT(worker(0).BeginUpdate().Wait(),
              FailsWith(StatusCode::kDeadlineExceeded, "at sequence 0 of epoch 2 of model 'small' for rank 1"));
}

TEST_F(ModelDeadlineTest, ACallOutOfTurnNamesTheCallThatIsMissing) {
  worker(0).sequence = 3;
  EXPECT_THAT(worker(0).Gather("root").Wait(),
              FailsWith(StatusCode::kDeadlineExceeded,
                        "call.sequence: 3 waited 500ms for its turn; rank 0 has not made its call 0 of epoch 2"));
}

TEST_F(ModelDeadlineTest, AnOperationIsStillDoneWhenTheLateOnesCome) {
  EXPECT_THAT(worker(0).Gather("root").Wait(), FailsWith(StatusCode::kDeadlineExceeded, "rank 1"));
  const Pending<GatherResult> late = worker(1).Gather("root");
  world_->Attach(2);
  EXPECT_THAT(worker(2).Gather("root").Wait(), IsOk());
  EXPECT_NE(late.Wait().status().code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace holdfast
