#include "client/gradient_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace holdfast {
namespace {

TEST(GradientRingTest, AllClaimed_IsRefusedAtOnce) {
  auto ring = std::make_shared<GradientRing>(2);
  const auto first = ring->Claim(UnitIndex(0));
  const auto second = ring->Claim(UnitIndex(1));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->slot(), second->slot());
  EXPECT_EQ(ring->Claim(UnitIndex(2)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GradientRingTest, DestroyedClaim_FreesItsSlot) {
  auto ring = std::make_shared<GradientRing>(1);
  { const auto claim = ring->Claim(UnitIndex(0)); }
  EXPECT_TRUE(ring->Claim(UnitIndex(1)).ok());
}

TEST(GradientRingTest, MovedClaim_HoldsTheSlotOnce) {
  auto ring = std::make_shared<GradientRing>(1);
  std::optional<GradientClaim> kept;
  {
    auto claim = ring->Claim(UnitIndex(3));
    kept = *std::move(claim);
  }
  EXPECT_EQ(kept->unit(), UnitIndex(3));
  EXPECT_FALSE(ring->Claim(UnitIndex(0)).ok());
  kept.reset();
  EXPECT_TRUE(ring->Claim(UnitIndex(0)).ok());
}

TEST(GradientRingTest, SlotsReducing_ClaimWaitsForOneToFinish) {
  auto ring = std::make_shared<GradientRing>(1);
  auto claim = ring->Claim(UnitIndex(0));
  ASSERT_TRUE(ring->StartReducing(*claim).ok());
  EXPECT_FALSE(static_cast<bool>(*claim));
  absl::StatusOr<GradientClaim> next = absl::UnknownError("not claimed");
  std::thread claimant([&] { next = ring->Claim(UnitIndex(1)); });
  ring->FinishReducing(claim->slot(), claim->generation());
  claimant.join();
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST(GradientRingTest, TakenOverClaim_DoesNotFreeTheSlotOfItsSuccessor) {
  auto ring = std::make_shared<GradientRing>(1);
  auto claim = std::make_unique<GradientClaim>(*ring->Claim(UnitIndex(0)));
  ASSERT_TRUE(ring->StartReducing(*claim).ok());
  ring->FinishReducing(claim->slot(), claim->generation());
  const auto successor = ring->Claim(UnitIndex(1));
  ASSERT_TRUE(successor.ok());
  claim.reset();
  EXPECT_EQ(ring->Claim(UnitIndex(2)).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GradientRingTest, ClaimUsedTwice_IsRefused) {
  auto ring = std::make_shared<GradientRing>(1);
  auto claim = ring->Claim(UnitIndex(0));
  ASSERT_TRUE(ring->StartReducing(*claim).ok());
  EXPECT_EQ(ring->StartReducing(*claim).code(), absl::StatusCode::kInvalidArgument);
  ring->FinishReducing(claim->slot(), claim->generation());
}

TEST(GradientRingTest, ClaimOfAnotherRing_IsRefused) {
  auto ring = std::make_shared<GradientRing>(1);
  auto other = std::make_shared<GradientRing>(1);
  auto claim = other->Claim(UnitIndex(0));
  EXPECT_EQ(ring->StartReducing(*claim).code(), absl::StatusCode::kInvalidArgument);
}

TEST(GradientRingTest, Restart_EarlierClaimsAreDead) {
  auto ring = std::make_shared<GradientRing>(1);
  auto before = ring->Claim(UnitIndex(0));
  ring->Restart();
  EXPECT_EQ(ring->StartReducing(*before).code(), absl::StatusCode::kFailedPrecondition);
  auto after = ring->Claim(UnitIndex(0));
  ASSERT_TRUE(after.ok());
  *before = GradientClaim();
  EXPECT_FALSE(ring->Claim(UnitIndex(0)).ok()) << "the dead claim freed a slot that is not its own any more";
}

TEST(GradientRingTest, AwaitReduced_ReturnsWhenTheLastIsDone) {
  auto ring = std::make_shared<GradientRing>(2);
  auto first = ring->Claim(UnitIndex(0));
  auto second = ring->Claim(UnitIndex(1));
  ASSERT_TRUE(ring->StartReducing(*first).ok() && ring->StartReducing(*second).ok());
  std::thread finisher([&] {
    ring->FinishReducing(first->slot(), first->generation());
    ring->FinishReducing(second->slot(), second->generation());
  });
  ring->AwaitReduced();
  finisher.join();
  EXPECT_TRUE(ring->Claim(UnitIndex(0)).ok());
}

}  // namespace
}  // namespace holdfast
