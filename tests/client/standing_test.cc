#include "client/standing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace holdfast {
namespace {

using ::testing::HasSubstr;

v1::GroupEvent EpochEvent(uint64_t epoch, const std::string& reason) {
  v1::GroupEvent event;
  event.set_epoch(epoch);
  event.set_reason(reason);
  return event;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(StandingTest, BeforeEnter_IsOutOfStep) {
  Standing standing;
  EXPECT_EQ(standing.status().code(), absl::StatusCode::kUnavailable);
  standing.Enter(Epoch(1));
  EXPECT_TRUE(standing.status().ok());
}

TEST(StandingTest, Fail_FirstReasonIsKept) {
  Standing standing;
  standing.Enter(Epoch(1));
  standing.Fail(standing.generation(), absl::AbortedError("first"));
  standing.Fail(absl::InternalError("second"));
  EXPECT_EQ(standing.status(), absl::AbortedError("first"));
}

TEST(StandingTest, FailOfAnEarlierGeneration_DoesNoHarm) {
  Standing standing;
  standing.Enter(Epoch(1));
  const uint64_t before = standing.generation();
  standing.Enter(Epoch(2));
  standing.Fail(before, absl::AbortedError("late"));
  EXPECT_TRUE(standing.status().ok());
  EXPECT_EQ(standing.StatusOf(before).code(), absl::StatusCode::kAborted);
}

TEST(StandingTest, EventOfLaterEpoch_NamesTheReason) {
  Standing standing;
  standing.Enter(Epoch(4));
  standing.OnEvent(EpochEvent(5, "rank 1 (process 77) died"));
  EXPECT_EQ(standing.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Message(standing.status()), HasSubstr("rank 1 (process 77) died"));
}

TEST(StandingTest, EventOfTheEnteredEpoch_IsNoFailure) {
  Standing standing;
  standing.Enter(Epoch(5));
  standing.OnEvent(EpochEvent(5, "old news"));
  EXPECT_TRUE(standing.status().ok());
}

TEST(StandingTest, EventBeforeTheAnswerOfRejoin_PutsItOutOfStepAgain) {
  Standing standing;
  standing.Enter(Epoch(1));
  standing.OnEvent(EpochEvent(2, "first death"));
  standing.OnEvent(EpochEvent(3, "second death"));
  standing.Enter(Epoch(2));
  EXPECT_THAT(Message(standing.status()), HasSubstr("second death"));
  standing.Enter(Epoch(3));
  EXPECT_TRUE(standing.status().ok());
}

TEST(StandingTest, Forget_TheNextDaemonMayCountFromOne) {
  Standing standing;
  standing.Enter(Epoch(9));
  v1::GroupEvent event;
  event.set_draining(true);
  standing.OnEvent(event);
  EXPECT_TRUE(standing.draining());
  EXPECT_TRUE(standing.status().ok());
  standing.Forget(absl::UnavailableError("gone"));
  EXPECT_EQ(standing.status(), absl::UnavailableError("gone"));
  standing.Enter(Epoch(1));
  EXPECT_TRUE(standing.status().ok());
  EXPECT_FALSE(standing.draining());
}

TEST(StandingTest, AwaitFailure_WakesWhenItFails) {
  Standing standing;
  standing.Enter(Epoch(1));
  absl::Status seen;
  std::thread waiter([&] { seen = standing.AwaitFailure(standing.generation(), absl::InfiniteFuture()); });
  standing.Fail(absl::AbortedError("it"));
  waiter.join();
  EXPECT_FALSE(seen.ok());
}

TEST(StandingTest, AwaitFailure_OkAtTheDeadline) {
  Standing standing;
  standing.Enter(Epoch(1));
  EXPECT_TRUE(standing.AwaitFailure(standing.generation(), absl::InfinitePast()).ok());
}

}  // namespace
}  // namespace holdfast
