#include "client/gather_tickets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr UnitIndex kA(0), kB(1), kC(2), kD(3);

std::vector<int32_t> Units(const std::vector<GatherTickets::Entry>& entries) {
  std::vector<int32_t> units;
  for (const auto& entry : entries) units.push_back(entry.unit.value());
  return units;
}

TEST(GatherTicketsTest, FirstGather_NeedsACall) {
  GatherTickets tickets(3);
  const auto plan = tickets.Begin(kA, {kB});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->needs_call);
  EXPECT_THAT(Units(plan->prefetch), ElementsAre(1));
  EXPECT_THAT(plan->released, IsEmpty());
}

TEST(GatherTicketsTest, PrefetchedUnit_NeedsNoCallAndHasTheSamePromise) {
  GatherTickets tickets(3);
  const auto first = tickets.Begin(kA, {kB});
  const auto second = tickets.Begin(kB, {});
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->needs_call);
  EXPECT_EQ(second->unit.ticket, first->prefetch[0].ticket);
}

TEST(GatherTicketsTest, HeldUnitWithNewPrefetch_CallsForTheNewOneOnly) {
  GatherTickets tickets(3);
  ASSERT_TRUE(tickets.Begin(kA, {kB}).ok());
  const auto plan = tickets.Begin(kB, {kA, kC, kC});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->needs_call);
  EXPECT_THAT(Units(plan->prefetch), ElementsAre(2));
}

TEST(GatherTicketsTest, Released_IsToldWithTheNextCall) {
  GatherTickets tickets(2);
  ASSERT_TRUE(tickets.Begin(kA, {kB}).ok());
  tickets.Release(kA);
  const auto without_call = tickets.Begin(kB, {});
  EXPECT_FALSE(without_call->needs_call);
  EXPECT_THAT(without_call->released, IsEmpty());
  const auto with_call = tickets.Begin(kC, {});
  EXPECT_THAT(Units(with_call->released), ElementsAre(0));
  EXPECT_THAT(tickets.TakeReleased(), IsEmpty());
}

TEST(GatherTicketsTest, ReleasedAndGatheredAgainBeforeItIsTold_IsTakenBack) {
  GatherTickets tickets(2);
  const auto first = tickets.Begin(kA, {});
  tickets.Release(kA);
  const auto again = tickets.Begin(kA, {});
  EXPECT_FALSE(again->needs_call);
  EXPECT_EQ(again->unit.ticket, first->unit.ticket);
  EXPECT_THAT(tickets.TakeReleased(), IsEmpty());
}

TEST(GatherTicketsTest, ReleasedAndTold_IsGatheredAnew) {
  GatherTickets tickets(2);
  const auto first = tickets.Begin(kA, {});
  tickets.Release(kA);
  EXPECT_THAT(Units(tickets.TakeReleased()), ElementsAre(0));
  const auto again = tickets.Begin(kA, {});
  EXPECT_TRUE(again->needs_call);
  EXPECT_NE(again->unit.ticket, first->unit.ticket);
}

TEST(GatherTicketsTest, MoreThanTheSlots_IsRefusedAndNothingChanges) {
  GatherTickets tickets(2);
  ASSERT_TRUE(tickets.Begin(kA, {kB}).ok());
  const auto refused = tickets.Begin(kA, {kB, kC});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(tickets.Begin(kC, {}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(tickets.Begin(kA, {kB})->needs_call);
  tickets.Release(kB);
  EXPECT_TRUE(tickets.Begin(kC, {}).ok());
}

TEST(GatherTicketsTest, ReleasedUnit_DoesNotCountAgainstTheSlots) {
  GatherTickets tickets(1);
  for (const UnitIndex unit : {kA, kB, kC, kD}) {
    ASSERT_TRUE(tickets.Begin(unit, {}).ok()) << unit;
    tickets.Release(unit);
  }
}

TEST(GatherTicketsTest, Clear_ForgetsHeldAndReleased) {
  GatherTickets tickets(2);
  ASSERT_TRUE(tickets.Begin(kA, {kB}).ok());
  tickets.Release(kB);
  tickets.Clear();
  EXPECT_THAT(tickets.TakeReleased(), IsEmpty());
  EXPECT_TRUE(tickets.Begin(kA, {kB})->needs_call);
}

TEST(GatherTicketsTest, ReleaseOfWhatIsNotHeld_IsNothing) {
  GatherTickets tickets(1);
  tickets.Release(kA);
  EXPECT_THAT(tickets.TakeReleased(), IsEmpty());
}

}  // namespace
}  // namespace holdfast
