#include "server/logging/logger.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "server/logging/json_text.h"
#include "server/logging/log_event.h"

namespace holdfast {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LoggerTest : public testing::Test {
 protected:
  std::shared_ptr<spdlog::logger> Create(v1::LogFormat format, v1::LogLevel level = v1::LOG_LEVEL_DEBUG) {
    return CreateLogger(format, level, std::make_shared<spdlog::sinks::ostream_sink_mt>(out_));
  }
  // What was written must be one line, and valid JSON.
  google::protobuf::Struct ParseLine() {
    const std::string text = out_.str();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    google::protobuf::Struct line;
    const auto parsed = google::protobuf::util::JsonStringToMessage(text, &line);
    EXPECT_TRUE(parsed.ok()) << parsed << "\n" << text;
    return line;
  }

  std::ostringstream out_;
};

TEST_F(LoggerTest, TextLineHasTimeLevelMessageAndFields) {
  LogEvent(*Create(v1::LOG_FORMAT_TEXT), spdlog::level::info, "lease taken", {{"model", "demo"}, {"rank", 2}});
  EXPECT_THAT(out_.str(),
              MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9][0-9][0-9][0-9][0-9][0-9]Z I lease taken model=demo rank=2\n"));
}

TEST_F(LoggerTest, UnspecifiedMeansTextAndInfo) {
  const auto logger = Create(v1::LOG_FORMAT_UNSPECIFIED, v1::LOG_LEVEL_UNSPECIFIED);
  logger->debug("not written");
  EXPECT_EQ(out_.str(), "");
  logger->info("written");
  EXPECT_THAT(out_.str(), EndsWith("Z I written\n"));
}

TEST_F(LoggerTest, LevelHoldsBackWhatIsBelow) {
  const auto logger = Create(v1::LOG_FORMAT_TEXT, v1::LOG_LEVEL_ERROR);
  LogEvent(*logger, spdlog::level::warn, "not written", {{"rank", 1}});
  EXPECT_EQ(out_.str(), "");
  LogEvent(*logger, spdlog::level::err, "written", {});
  EXPECT_THAT(out_.str(), EndsWith("Z E written\n"));
}

TEST_F(LoggerTest, TextStaysOnOneLineAndShowsWhereValuesEnd) {
  LogEvent(*Create(v1::LOG_FORMAT_TEXT), spdlog::level::warn, "a \"b\"\nfake line \x1b[31m",
           {{"reason", "two words"}, {"empty", ""}, {"path", "/run/x.sock"}});
  EXPECT_THAT(out_.str(), EndsWith("W a \"b\"\\nfake line \\u001b[31m reason=\"two words\" empty=\"\" "
                                   "path=/run/x.sock\n"));
}

TEST_F(LoggerTest, JsonHasTypedFields) {
  LogEvent(*Create(v1::LOG_FORMAT_JSON), spdlog::level::err, "epoch ended",
           {{"model", "demo"}, {"epoch", uint64_t{7}}, {"step", -1}});
  const auto fields = ParseLine().fields();
  EXPECT_EQ(fields.at("level").string_value(), "error");
  EXPECT_EQ(fields.at("message").string_value(), "epoch ended");
  EXPECT_EQ(fields.at("model").string_value(), "demo");
  EXPECT_EQ(fields.at("epoch").number_value(), 7);
  EXPECT_EQ(fields.at("step").number_value(), -1);
  EXPECT_EQ(fields.at("time").string_value().size(), std::string("2026-12-01T08:15:30.123456Z").size());
}

TEST_F(LoggerTest, JsonEscapesWhateverIsLogged) {
  std::string every_byte;
  for (int c = 1; c < 256; ++c) every_byte.push_back(static_cast<char>(c));
  LogEvent(*Create(v1::LOG_FORMAT_JSON), spdlog::level::info, every_byte, {{"value", every_byte}});
  const auto fields = ParseLine().fields();
  EXPECT_EQ(fields.size(), 4u);
  EXPECT_THAT(fields.at("message").string_value(), HasSubstr("\t\n\v"));
  EXPECT_THAT(fields.at("value").string_value(), HasSubstr("!\"#"));
  EXPECT_THAT(fields.at("value").string_value(), HasSubstr("[\\]"));
}

TEST_F(LoggerTest, PlainSpdlogCallsAreLinesToo) {
  Create(v1::LOG_FORMAT_JSON)->info("{} ranks", 4);
  EXPECT_EQ(ParseLine().fields().at("message").string_value(), "4 ranks");
}

TEST_F(LoggerTest, BracesInAMessageAreNoFormat) {
  LogEvent(*Create(v1::LOG_FORMAT_JSON), spdlog::level::info, "{} {0:x", {});
  EXPECT_EQ(ParseLine().fields().at("message").string_value(), "{} {0:x");
}

TEST(EscapeJsonTest, KeepsUtf8AndReplacesWhatIsNot) {
  EXPECT_EQ(EscapeJson("Gewicht ü 重 😀"), "Gewicht ü 重 😀");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeJson("a\xC3"), "a" + bad);
  EXPECT_EQ(EscapeJson("\xC0\xAF"), bad + bad) << "overlong";
  EXPECT_EQ(EscapeJson("\xED\xA0\x80"), bad + bad + bad) << "surrogate";
  EXPECT_EQ(EscapeJson("\xF4\x90\x80\x80"), bad + bad + bad + bad) << "beyond Unicode";
}

}  // namespace
}  // namespace holdfast
