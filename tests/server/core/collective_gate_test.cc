#include "server/core/collective_gate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using Outcome = CollectiveGate::Outcome;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

OperationKey GatherOf(int32_t unit) { return {.kind = OperationKind::kGather, .unit = UnitIndex(unit)}; }

TEST(CollectiveGateTest, LastRankCompletesWhateverTheOrderOfArrival) {
  CollectiveGate gate(3);
  EXPECT_EQ(gate.Arrive(Rank(2), Sequence(0), GatherOf(7)).outcome, Outcome::kWaiting);
  EXPECT_EQ(gate.Arrive(Rank(0), Sequence(0), GatherOf(7)).outcome, Outcome::kWaiting);
  EXPECT_EQ(gate.Arrive(Rank(1), Sequence(0), GatherOf(7)).outcome, Outcome::kComplete);
}

TEST(CollectiveGateTest, OneRankCompletesAtOnce) {
  CollectiveGate gate(1);
  for (uint64_t i = 0; i < 3 * CollectiveGate::kWindow; ++i) {
    ASSERT_EQ(gate.Arrive(Rank(0), Sequence(i), GatherOf(0)).outcome, Outcome::kComplete);
  }
  EXPECT_EQ(gate.Room(Rank(0)), CollectiveGate::kWindow);
}

TEST(CollectiveGateTest, EachRankIsExpectedAtItsOwnNumber) {
  CollectiveGate gate(2);
  gate.Arrive(Rank(1), Sequence(0), GatherOf(0));
  gate.Arrive(Rank(1), Sequence(1), GatherOf(1));
  EXPECT_EQ(gate.next(Rank(0)), Sequence(0));
  EXPECT_EQ(gate.next(Rank(1)), Sequence(2));
  EXPECT_THAT(gate.Missing(Sequence(0)), ElementsAre(Rank(0)));
  EXPECT_THAT(gate.Missing(Sequence(2)), ElementsAre(Rank(0), Rank(1)));
  EXPECT_EQ(gate.Arrive(Rank(0), Sequence(0), GatherOf(0)).outcome, Outcome::kComplete);
  EXPECT_THAT(gate.Missing(Sequence(0)), IsEmpty());
  EXPECT_THAT(gate.Missing(Sequence(1)), ElementsAre(Rank(0)));
}

TEST(CollectiveGateTest, AnyDifferenceInWhatIsAskedIsADesyncThatNamesTheFirstAsker) {
  const OperationKey reduce = {.kind = OperationKind::kReduceScatter, .unit = UnitIndex(3)};
  const OperationKey commit = {.kind = OperationKind::kCommitUpdate};
  OperationKey other_unit = reduce, accumulates = reduce, other_kind = reduce, with_ema = commit;
  other_unit.unit = UnitIndex(4);
  accumulates.variant = true;
  other_kind.kind = OperationKind::kGather;
  with_ema.ema_step = true;
  for (const auto& [first, second] : {std::pair(reduce, other_unit), std::pair(reduce, accumulates),
                                      std::pair(reduce, other_kind), std::pair(commit, with_ema)}) {
    CollectiveGate gate(3);
    gate.Arrive(Rank(1), Sequence(0), first);
    gate.Arrive(Rank(2), Sequence(0), first);
    const CollectiveGate::Arrival arrival = gate.Arrive(Rank(0), Sequence(0), second);
    EXPECT_EQ(arrival.outcome, Outcome::kDesync);
    EXPECT_EQ(arrival.other, Rank(1));
    EXPECT_TRUE(arrival.other_key == first);
    // Nothing has changed: the right call still completes the number.
    EXPECT_EQ(gate.next(Rank(0)), Sequence(0));
    EXPECT_EQ(gate.Arrive(Rank(0), Sequence(0), first).outcome, Outcome::kComplete);
  }
}

TEST(CollectiveGateTest, RoomShrinksAsARankRunsAheadAndComesBackAsTheOthersFollow) {
  CollectiveGate gate(2);
  for (uint64_t i = 0; i < CollectiveGate::kWindow; ++i) {
    ASSERT_EQ(gate.Room(Rank(0)), CollectiveGate::kWindow - i);
    ASSERT_EQ(gate.Arrive(Rank(0), Sequence(i), GatherOf(0)).outcome, Outcome::kWaiting);
  }
  EXPECT_EQ(gate.Room(Rank(0)), 0u);
  EXPECT_EQ(gate.Room(Rank(1)), CollectiveGate::kWindow);
  EXPECT_EQ(gate.Arrive(Rank(1), Sequence(0), GatherOf(0)).outcome, Outcome::kComplete);
  EXPECT_EQ(gate.Room(Rank(0)), 1u);
}

TEST(CollectiveGateTest, ResetStartsEveryRankAtZeroAndForgetsWhoWaited) {
  CollectiveGate gate(2);
  gate.Arrive(Rank(0), Sequence(0), GatherOf(0));
  gate.Arrive(Rank(1), Sequence(0), GatherOf(0));
  gate.Arrive(Rank(1), Sequence(1), GatherOf(1));
  gate.Reset();
  EXPECT_EQ(gate.next(Rank(1)), Sequence(0));
  EXPECT_EQ(gate.Room(Rank(1)), CollectiveGate::kWindow);
  EXPECT_EQ(gate.Arrive(Rank(0), Sequence(0), GatherOf(5)).outcome, Outcome::kWaiting);
  EXPECT_EQ(gate.Arrive(Rank(1), Sequence(0), GatherOf(5)).outcome, Outcome::kComplete);
}

}  // namespace
}  // namespace holdfast
