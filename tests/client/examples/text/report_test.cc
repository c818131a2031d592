#include "client/examples/text/report.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace text {
namespace {

TEST(ReportTest, Step_ComesBackExactly) {
  const StepReport sent{.rank = 3,
                        .step = 1234567890123,
                        .loss = 1.23456789f,
                        .num_tokens = 512,
                        .seconds = 0.25,
                        .daemon_seconds = 0.125};
  const auto report = ParseReport(FormatReport(sent));
  ASSERT_TRUE(report.ok()) << report.status();
  const auto& got = std::get<StepReport>(*report);
  EXPECT_EQ(got.rank, sent.rank);
  EXPECT_EQ(got.step, sent.step);
  EXPECT_EQ(got.loss, sent.loss);
  EXPECT_EQ(got.num_tokens, sent.num_tokens);
  EXPECT_EQ(got.seconds, sent.seconds);
  EXPECT_EQ(got.daemon_seconds, sent.daemon_seconds);
}

TEST(ReportTest, Attach_ComesBack) {
  const auto report = ParseReport(FormatReport(AttachReport{.rank = 2, .step = 150, .epoch = 7}));
  ASSERT_TRUE(report.ok()) << report.status();
  const auto& got = std::get<AttachReport>(*report);
  EXPECT_EQ(got.rank, 2);
  EXPECT_EQ(got.step, 150u);
  EXPECT_EQ(got.epoch, 7u);
}

TEST(ReportTest, Retry_ReasonOfSeveralLines_ComesBackInOne) {
  const auto report =
      ParseReport(FormatReport(RetryReport{.rank = 1, .step = 5, .epoch = 2, .reason = "rank 3 died:\nclosed socket"}));
  ASSERT_TRUE(report.ok()) << report.status();
  const auto& got = std::get<RetryReport>(*report);
  EXPECT_EQ(got.rank, 1);
  EXPECT_EQ(got.step, 5u);
  EXPECT_EQ(got.epoch, 2u);
  EXPECT_EQ(got.reason, "rank 3 died: closed socket");
}

TEST(ReportTest, Parse_AnythingElse_IsRefused) {
  for (const char* line : {"", "step", "step 1 2 x 4 5 6", "step 1 2 3 4 5", "attached 1 2", "attached a 2 3",
                           "retry 1 2", "hello 1 2 3"}) {
    EXPECT_EQ(ParseReport(line).status().code(), absl::StatusCode::kInvalidArgument) << line;
  }
}

}  // namespace
}  // namespace text
