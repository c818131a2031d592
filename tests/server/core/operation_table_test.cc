#include "server/core/operation_table.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/pending.h"
#include "tests/server/core/status_matchers.h"

namespace holdfast {
namespace {

const OperationKey kKey = {.kind = OperationKind::kGather, .unit = UnitIndex(1)};
const absl::Time kStart = absl::FromUnixSeconds(1000);

Operation::Waiter WaiterOf(uint64_t call, absl::Time deadline = absl::InfiniteFuture()) {
  return {.rank = Rank(0), .call = CallId(call), .deadline = deadline, .done = [](const absl::Status&) {}};
}

TEST(OperationTableTest, RanksThatArriveAtOneNumberShareAnOperation) {
  OperationTable table(2);
  Operation& first = table.Open(Sequence(5), kKey);
  Operation& other = table.Open(Sequence(6), kKey);
  EXPECT_EQ(&table.Open(Sequence(5), kKey), &first);
  EXPECT_NE(&first, &other);
  EXPECT_EQ(first.completion, Completion(1));
  EXPECT_EQ(other.completion, Completion(2));
  EXPECT_EQ(table.last_completion(), Completion(2));
  EXPECT_THAT(first.slots, ::testing::ElementsAre(-1, -1));
}

TEST(OperationTableTest, ANumberOfANewEpochOpensANewOperationBesideALaunchedOne) {
  OperationTable table(1);
  table.Open(Sequence(0), kKey).launched = true;
  EXPECT_EQ(table.Open(Sequence(0), kKey).completion, Completion(2));
}

TEST(OperationTableTest, AClosedOperationIsNotFound) {
  OperationTable table(1);
  table.Open(Sequence(0), kKey).waiters.push_back(WaiterOf(3));
  ASSERT_NE(table.Find(Completion(1)), nullptr);
  const Operation closed = table.Close(Completion(1));
  EXPECT_EQ(closed.waiters.size(), 1u);
  EXPECT_EQ(table.Find(Completion(1)), nullptr);
}

TEST(OperationTableTest, AnEndedEpochLeavesOnlyWhatIsLaunched) {
  OperationTable table(1);
  table.Open(Sequence(0), kKey).launched = true;
  table.Open(Sequence(1), kKey);
  table.Open(Sequence(2), kKey);
  const std::vector<Operation> closed = table.CloseUnlaunched();
  ASSERT_EQ(closed.size(), 2u);
  EXPECT_EQ(closed[0].sequence, Sequence(1));
  EXPECT_EQ(closed[1].sequence, Sequence(2));
  EXPECT_NE(table.Find(Completion(1)), nullptr);
}

TEST(OperationTableTest, AnUpdateWaitsForEarlierNumbersAndForAllThatIsLaunched) {
  OperationTable table(1);
  EXPECT_TRUE(table.AllEndedBefore(Sequence(9)));
  table.Open(Sequence(4), kKey);
  EXPECT_TRUE(table.AllEndedBefore(Sequence(4)));
  EXPECT_FALSE(table.AllEndedBefore(Sequence(5)));
  // Launched in an earlier epoch, where numbers were higher.
  table.Open(Sequence(4), kKey).launched = true;
  EXPECT_FALSE(table.AllEndedBefore(Sequence(0)));
  table.Close(Completion(1));
  EXPECT_TRUE(table.AllEndedBefore(Sequence(9)));
}

TEST(OperationTableTest, AWaiterIsTakenOnceByItsCall) {
  OperationTable table(1);
  table.Open(Sequence(0), kKey).waiters.push_back(WaiterOf(3));
  table.Open(Sequence(1), kKey).waiters.push_back(WaiterOf(4));
  const std::optional<Operation::Waiter> taken = table.TakeWaiter(CallId(4));
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->call, CallId(4));
  EXPECT_FALSE(table.TakeWaiter(CallId(4)).has_value());
  EXPECT_TRUE(table.TakeWaiter(CallId(3)).has_value());
}

TEST(OperationTableTest, OnlyWaitersForPeersHaveADeadline) {
  OperationTable table(1);
  EXPECT_EQ(table.NextDeadline(), absl::InfiniteFuture());
  Operation& nobody_waits = table.Open(Sequence(0), kKey);
  EXPECT_EQ(table.NextDeadline(), absl::InfiniteFuture());
  nobody_waits.waiters.push_back(WaiterOf(1, kStart + absl::Seconds(5)));
  nobody_waits.waiters.push_back(WaiterOf(2, kStart + absl::Seconds(2)));
  EXPECT_EQ(table.NextDeadline(), kStart + absl::Seconds(2));
  nobody_waits.launched = true;
  EXPECT_EQ(table.NextDeadline(), absl::InfiniteFuture());
  EXPECT_TRUE(table.TakeExpired(absl::InfiniteFuture()).empty());
}

TEST(OperationTableTest, WaitersExpireEachAtItsOwnTime) {
  OperationTable table(1);
  table.Open(Sequence(7), kKey).waiters.push_back(WaiterOf(1, kStart));
  table.Open(Sequence(7), kKey).waiters.push_back(WaiterOf(2, kStart + absl::Seconds(1)));
  EXPECT_TRUE(table.TakeExpired(kStart - absl::Nanoseconds(1)).empty());
  const std::vector<std::pair<Sequence, Operation::Waiter>> expired = table.TakeExpired(kStart);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].first, Sequence(7));
  EXPECT_EQ(expired[0].second.call, CallId(1));
  EXPECT_EQ(table.NextDeadline(), kStart + absl::Seconds(1));
}

}  // namespace
}  // namespace holdfast
