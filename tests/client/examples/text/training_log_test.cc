#include "client/examples/text/training_log.h"

#include <gtest/gtest.h>

#include <limits>

namespace text {
namespace {

StepReport Report(int32_t rank, uint64_t step, float loss) {
  return {.rank = rank, .step = step, .loss = loss, .num_tokens = 100, .seconds = 0.5, .daemon_seconds = 0.1};
}

TEST(TrainingLogTest, Add_TellsWhenAStepIsComplete) {
  TrainingLog log(2);
  EXPECT_FALSE(log.Add(Report(0, 1, 4)));
  EXPECT_FALSE(log.Add(Report(0, 2, 2)));
  EXPECT_TRUE(log.Add(Report(1, 1, 2)));
  const StepSummary summary = log.Summary(1);
  EXPECT_DOUBLE_EQ(summary.mean_loss, 3);
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 400);
  EXPECT_DOUBLE_EQ(summary.daemon_share, 0.2);
}

TEST(TrainingLogTest, Losses_ARankIsMissing_MeanOfTheOthers) {
  TrainingLog log(2);
  log.Add(Report(0, 1, 4));
  log.Add(Report(1, 1, 3));
  log.Add(Report(1, 2, 2));
  const std::vector<LossPoint> losses = log.Losses();
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_DOUBLE_EQ(losses[0].loss, 3.5);
  EXPECT_EQ(losses[1].step, 2u);
  EXPECT_DOUBLE_EQ(losses[1].loss, 2);
}

TEST(CheckLossFellTest, OnlyAClearFallIsOne) {
  const auto check = [](double first, double last) {
    std::vector<LossPoint> losses;
    for (uint64_t step = 1; step <= 40; ++step) losses.push_back({.step = step, .loss = step <= 36 ? first : last});
    return CheckLossFell(losses);
  };
  EXPECT_TRUE(check(4, 2).ok());
  EXPECT_EQ(check(4, 3).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(check(4, 5).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(check(4, std::numeric_limits<double>::quiet_NaN()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckLossFell({}).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace text
