#include "client/holdfastctl/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/holdfastctl/command.h"

namespace holdfast::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr FlagSpec kFlags[] = {{"force", "", "a switch"}, {"out", "DIRECTORY", "with a value"}};

absl::StatusOr<Arguments> Parse(const std::vector<std::string>& arguments) {
  return Arguments::Parse(arguments, kFlags);
}

TEST(ArgumentsTest, FlagsAndWordsInAnyOrder) {
  const absl::StatusOr<Arguments> arguments = Parse({"a", "--out", "/x", "b", "--force", "--", "--out=c"});
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  EXPECT_THAT(arguments->words(), ElementsAre("a", "b", "--out=c"));
  EXPECT_TRUE(arguments->Has("force"));
  EXPECT_EQ(arguments->Get("out"), "/x");
}

TEST(ArgumentsTest, ValuesMayBeEmptyOrHaveEqualsSigns) {
  EXPECT_EQ(Parse({"--out="})->Get("out", "other"), "");
  EXPECT_EQ(Parse({"--out=a=b"})->Get("out"), "a=b");
  EXPECT_EQ(Parse({})->Get("out", "other"), "other");
  EXPECT_FALSE(Parse({})->Has("force"));
}

TEST(ArgumentsTest, WrongFlagsAreNamed) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--outt=x"}, "--outt: no such flag; there are --force, --out"},
      {{"--out"}, "--out: a value is required, as --out=DIRECTORY"},
      {{"--force=yes"}, "--force takes no value"},
      {{"--=x"}, "--: no such flag"},
  };
  for (const auto& [arguments, message] : cases) {
    const absl::Status status = Parse(arguments).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(ArgumentsTest, Durations) {
  EXPECT_EQ(*Parse({"--out=1m30s"})->GetDuration("out", absl::Seconds(1)), absl::Seconds(90));
  EXPECT_EQ(*Parse({"--out=0"})->GetDuration("out", absl::Seconds(1)), absl::ZeroDuration());
  EXPECT_EQ(*Parse({})->GetDuration("out", absl::Seconds(1)), absl::Seconds(1));
  for (const char* wrong : {"30", "-1s", "inf", "soon", ""}) {
    const absl::Status status = Parse({std::string("--out=") + wrong})->GetDuration("out", absl::Seconds(1)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("--out: '" + std::string(wrong) + "'"));
  }
}

TEST(CommandsTest, EachCanBeRunAndIsExplained) {
  for (const Command& command : AllCommands()) {
    EXPECT_NE(command.run, nullptr) << command.name;
    EXPECT_NE(command.summary, "") << command.name;
    EXPECT_LE(command.min_words, command.max_words) << command.name;
    EXPECT_EQ(command.words.empty(), command.max_words == 0) << command.name;
    for (const FlagSpec& flag : command.flags) EXPECT_NE(flag.help, "") << flag.name;
  }
}

}  // namespace
}  // namespace holdfast::ctl
