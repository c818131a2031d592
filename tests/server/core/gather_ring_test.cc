#include "server/core/gather_ring.h"

#include "gtest/gtest.h"

namespace holdfast {
namespace {

constexpr UnitIndex kA{0}, kB{1}, kC{2}, kD{3};

// Takes a slot for `unit` and fills it.
int32_t Fill(GatherRing& ring, UnitIndex unit, uint64_t completion) {
  const int32_t slot = ring.Acquire(unit, Completion(completion));
  ring.MarkReady(slot);
  return slot;
}

TEST(GatherRingTest, AnAcquiredSlotIsFoundAndInUse) {
  GatherRing ring(2);
  EXPECT_EQ(ring.NumAvailable(), 2);
  const int32_t slot = ring.Acquire(kA, Completion(9));
  EXPECT_EQ(ring.Find(kA), slot);
  EXPECT_EQ(ring.Find(kB), std::nullopt);
  EXPECT_EQ(ring.NumAvailable(), 1);
  EXPECT_EQ(ring.slots()[static_cast<size_t>(slot)].completion, Completion(9));
  EXPECT_FALSE(ring.slots()[static_cast<size_t>(slot)].ready);
}

TEST(GatherRingTest, AReleasedUnitIsFoundUntilItsSlotIsTaken) {
  GatherRing ring(1);
  Fill(ring, kA, 1);
  EXPECT_EQ(ring.NumAvailable(), 0);
  ring.Release(kA);
  EXPECT_EQ(ring.NumAvailable(), 1);
  EXPECT_EQ(ring.Find(kA), 0);
  EXPECT_EQ(ring.Acquire(kB, Completion(2)), 0);
  EXPECT_EQ(ring.Find(kA), std::nullopt);
}

TEST(GatherRingTest, TheSlotLeastRecentlyUsedIsTakenFirst) {
  GatherRing ring(3);
  const int32_t a = Fill(ring, kA, 1), b = Fill(ring, kB, 2), c = Fill(ring, kC, 3);
  // The order of releases does not count, the order of uses does.
  ring.Release(kC);
  ring.Release(kB);
  ring.Release(kA);
  ring.Use(a);
  ring.Release(kA);
  EXPECT_EQ(ring.Acquire(kD, Completion(4)), b);
  EXPECT_EQ(ring.Acquire(kB, Completion(5)), c);
}

TEST(GatherRingTest, EmptySlotsAreTakenBeforeAnythingIsOverwritten) {
  GatherRing ring(2);
  const int32_t a = Fill(ring, kA, 1);
  ring.Release(kA);
  EXPECT_NE(ring.Acquire(kB, Completion(2)), a);
  EXPECT_EQ(ring.Find(kA), a);
}

TEST(GatherRingTest, AUseKeepsAReleasedSlotFromBeingTaken) {
  GatherRing ring(1);
  Fill(ring, kA, 1);
  ring.Release(kA);
  ring.Use(0);
  EXPECT_EQ(ring.NumAvailable(), 0);
}

TEST(GatherRingTest, ASlotThatIsBeingFilledIsNotAvailableThoughReleased) {
  GatherRing ring(1);
  ring.Acquire(kA, Completion(1));
  ring.Release(kA);
  EXPECT_EQ(ring.NumAvailable(), 0);
  ring.MarkReady(0);
  EXPECT_EQ(ring.NumAvailable(), 1);
}

TEST(GatherRingTest, ReleasingAUnitWithoutASlotDoesNothing) {
  GatherRing ring(1);
  Fill(ring, kA, 1);
  ring.Release(kB);
  EXPECT_EQ(ring.NumAvailable(), 0);
}

TEST(GatherRingTest, ReleaseAllKeepsContentsAndEmptyAllForgetsThem) {
  GatherRing ring(2);
  Fill(ring, kA, 1);
  Fill(ring, kB, 2);
  ring.ReleaseAll();
  EXPECT_EQ(ring.NumAvailable(), 2);
  EXPECT_TRUE(ring.Find(kA).has_value());
  ring.Empty(*ring.Find(kA));
  EXPECT_EQ(ring.Find(kA), std::nullopt);
  EXPECT_TRUE(ring.Find(kB).has_value());
  ring.EmptyAll();
  EXPECT_EQ(ring.Find(kB), std::nullopt);
  EXPECT_EQ(ring.NumAvailable(), 2);
}

}  // namespace
}  // namespace holdfast
