#include "server/core/lease_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/status_matchers.h"
#include "tests/server/core/test_worker.h"

namespace holdfast {
namespace {

constexpr Rank kRank{1};

class LeaseTableTest : public ::testing::Test {
 protected:
  absl::Status Attach(int32_t pid) { return table_.Attach(kRank, pid, std::make_shared<RecordingListener>()); }
  const Lease& lease() const { return table_.lease(kRank); }

  LeaseTable table_{2};
};

TEST_F(LeaseTableTest, ALeaseIsFoundByItsIdAndToken) {
  ASSERT_THAT(Attach(7), IsOk());
  EXPECT_EQ(lease().state, LeaseState::kHeld);
  EXPECT_EQ(*table_.Find(lease().id), kRank);
  EXPECT_EQ(*table_.FindToken(lease().token), kRank);
  EXPECT_EQ(lease().token.size(), 32u);
  EXPECT_NE(lease().id, LeaseId(0));
  EXPECT_EQ(table_.NumIn(LeaseState::kHeld), 1);
  EXPECT_EQ(table_.NumIn(LeaseState::kFree), 1);
}

TEST_F(LeaseTableTest, IdsAndTokensOfFreeRanksAreOfNobody) {
  EXPECT_THAT(table_.Find(LeaseId(0)), FailsWith(absl::StatusCode::kAborted, "lease 0000000000000000 is not held"));
  EXPECT_THAT(table_.FindToken(""), FailsWith(absl::StatusCode::kPermissionDenied, "attach again"));
}

TEST_F(LeaseTableTest, RanksOfOtherNodesAreRefused) {
  for (const int32_t rank : {-1, 2, INT32_MAX}) {
    EXPECT_THAT(table_.Attach(Rank(rank), 7, std::make_shared<RecordingListener>()),
                FailsWith(absl::StatusCode::kInvalidArgument, "is not a rank of this node; they are 0 to 1"));
  }
}

TEST_F(LeaseTableTest, AHeldRankIsRefusedNamingItsProcess) {
  ASSERT_THAT(Attach(7), IsOk());
  for (const int32_t pid : {7, 8}) {
    EXPECT_THAT(Attach(pid), FailsWith(absl::StatusCode::kAlreadyExists, "rank 1 is held by process 7"));
  }
}

TEST_F(LeaseTableTest, AnEndedLeaseWithNothingMappedFreesTheRank) {
  ASSERT_THAT(Attach(7), IsOk());
  const LeaseId id = lease().id;
  const Lease ended = table_.End(kRank);
  EXPECT_EQ(ended.id, id);
  EXPECT_NE(ended.listener, nullptr);
  EXPECT_EQ(lease().state, LeaseState::kFree);
  EXPECT_EQ(lease().listener, nullptr);
  EXPECT_THAT(table_.Find(id), FailsWith(absl::StatusCode::kAborted, "is not held"));
  EXPECT_THAT(Attach(8), IsOk());
}

TEST_F(LeaseTableTest, AMappedRankWaitsForItsProcess) {
  ASSERT_THAT(Attach(7), IsOk());
  ASSERT_THAT(table_.ClaimMemory(kRank, lease().token, /*pid=*/70), IsOk());
  const std::string token = lease().token;
  table_.End(kRank);
  EXPECT_EQ(lease().state, LeaseState::kMapped);
  EXPECT_EQ(*table_.FindToken(token), kRank);
  // The kernel's word for the process counts.
  EXPECT_THAT(Attach(7), FailsWith(absl::StatusCode::kAlreadyExists, "process 70 lives and still maps its memory"));
  table_.MemoryReturned(kRank, token);
  EXPECT_EQ(lease().state, LeaseState::kFree);
  EXPECT_THAT(table_.FindToken(token), FailsWith(absl::StatusCode::kPermissionDenied, ""));
  EXPECT_THAT(Attach(7), IsOk());
}

TEST_F(LeaseTableTest, AProcessOfAnotherPidNamespaceKeepsThePidItGave) {
  ASSERT_THAT(Attach(7), IsOk());
  ASSERT_THAT(table_.ClaimMemory(kRank, lease().token, /*pid=*/0), IsOk());
  table_.End(kRank);
  EXPECT_EQ(lease().pid, 7);
}

TEST_F(LeaseTableTest, ATokenIsUsedOnceAndOnlyWhileItsLeaseIsHeld) {
  ASSERT_THAT(Attach(7), IsOk());
  const std::string token = lease().token;
  ASSERT_THAT(table_.ClaimMemory(kRank, token, 7), IsOk());
  EXPECT_THAT(table_.ClaimMemory(kRank, token, 7), FailsWith(absl::StatusCode::kFailedPrecondition, "rank 1"));
  table_.End(kRank);
  EXPECT_THAT(table_.ClaimMemory(kRank, token, 7), FailsWith(absl::StatusCode::kFailedPrecondition, "rank 1"));
  ASSERT_THAT(Attach(7), IsOk());
  EXPECT_THAT(table_.ClaimMemory(kRank, token, 7), FailsWith(absl::StatusCode::kFailedPrecondition, "rank 1"));
  EXPECT_THAT(table_.ClaimMemory(kRank, lease().token, 7), IsOk());
}

TEST_F(LeaseTableTest, TheSameProcessAttachesAgainOverItsOldMapping) {
  ASSERT_THAT(Attach(7), IsOk());
  ASSERT_THAT(table_.ClaimMemory(kRank, lease().token, 7), IsOk());
  const LeaseId first = lease().id;
  table_.End(kRank);
  ASSERT_THAT(Attach(7), IsOk());
  EXPECT_EQ(lease().state, LeaseState::kHeld);
  EXPECT_NE(lease().id, first);
}

TEST_F(LeaseTableTest, AMappingOutlivesALaterLeaseThatMappedNothing) {
  ASSERT_THAT(Attach(7), IsOk());
  const std::string first = lease().token;
  ASSERT_THAT(table_.ClaimMemory(kRank, first, 7), IsOk());
  table_.End(kRank);
  ASSERT_THAT(Attach(7), IsOk());
  table_.End(kRank);
  EXPECT_THAT(Attach(8), FailsWith(absl::StatusCode::kAlreadyExists, "still maps"));
  table_.MemoryReturned(kRank, first);
  EXPECT_THAT(Attach(8), IsOk());
}

TEST_F(LeaseTableTest, ReturningAnOldMappingLeavesTheNewLeaseAlone) {
  ASSERT_THAT(Attach(7), IsOk());
  const std::string first = lease().token;
  ASSERT_THAT(table_.ClaimMemory(kRank, first, 7), IsOk());
  table_.End(kRank);
  ASSERT_THAT(Attach(7), IsOk());
  const std::string second = lease().token;
  ASSERT_THAT(table_.ClaimMemory(kRank, second, 7), IsOk());
  EXPECT_EQ(*table_.FindToken(first), kRank);
  table_.MemoryReturned(kRank, first);
  EXPECT_EQ(lease().state, LeaseState::kHeld);
  table_.End(kRank);
  EXPECT_EQ(lease().state, LeaseState::kMapped);
  table_.MemoryReturned(kRank, second);
  EXPECT_EQ(lease().state, LeaseState::kFree);
}

}  // namespace
}  // namespace holdfast
