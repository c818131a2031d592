#include "server/config/command_line.h"

#include <gmock/gmock.h>
#include <google/protobuf/duration.pb.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/config/closest_name.h"
#include "server/config/config_help.h"
#include "server/config/field_value.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

CommandLine Parse(const std::vector<std::string>& arguments) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  EXPECT_TRUE(line.ok()) << line.status();
  return line.ok() ? *line : CommandLine();
}

// A text that a flag of that type takes, other than the default.
std::string ExampleOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return "some text";
    case FieldDescriptor::CPPTYPE_ENUM:
      return ShortEnumName(*field.enum_type()->value(1));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "1m30s";
    default:
      return "7";
  }
}

TEST(CommandLineTest, EveryFieldHasAFlag) {
  const Descriptor* descriptor = v1::DaemonConfig::descriptor();
  ASSERT_GT(descriptor->field_count(), 0);
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor& field = *descriptor->field(i);
    const CommandLine line = Parse({absl::StrCat("--", field.name(), "=", ExampleOf(field))});
    std::vector<const FieldDescriptor*> set;
    line.config.GetReflection()->ListFields(line.config, &set);
    EXPECT_THAT(set, testing::ElementsAre(&field)) << field.name();
    EXPECT_EQ(line.origins.Describe(field.name()), absl::StrCat("--", field.name()));
  }
}

TEST(CommandLineTest, FlagsHaveTheTypesOfTheirFields) {
  const CommandLine line =
      Parse({"--num_ranks=4", "--backend=cpu", "--log_format=LOG_FORMAT_JSON", "--collective_timeout=1m30.5s",
             "--memory_limit_bytes=18446744073709551615", "--worker_socket", "/run/with=equals"});
  EXPECT_EQ(line.config.num_ranks(), 4u);
  EXPECT_EQ(line.config.backend(), v1::BACKEND_CPU);
  EXPECT_EQ(line.config.log_format(), v1::LOG_FORMAT_JSON);
  EXPECT_EQ(line.config.collective_timeout().seconds(), 90);
  EXPECT_EQ(line.config.collective_timeout().nanos(), 500'000'000);
  EXPECT_EQ(line.config.memory_limit_bytes(), UINT64_MAX);
  EXPECT_EQ(line.config.worker_socket(), "/run/with=equals");
}

TEST(CommandLineTest, LaterFlagWins) { EXPECT_EQ(Parse({"--num_ranks=4", "--num_ranks=2"}).config.num_ranks(), 2u); }

TEST(CommandLineTest, FlagsGoBeforeTheFile) {
  std::string path = std::filesystem::temp_directory_path() / "commandlineXXXXXX";
  ::close(::mkstemp(path.data()));
  std::ofstream(path) << "num_ranks: 4\nlog_level: LOG_LEVEL_ERROR\n";
  const CommandLine line = Parse({"--num_ranks=2", "--config=" + path});
  EXPECT_EQ(line.config.num_ranks(), 2u);
  EXPECT_EQ(line.origins.Describe("num_ranks"), "--num_ranks");
  EXPECT_EQ(line.config.log_level(), v1::LOG_LEVEL_ERROR);
  EXPECT_EQ(line.origins.Describe("log_level"), path + ":2:1: log_level");
  std::filesystem::remove(path);
}

TEST(CommandLineTest, Switches) {
  EXPECT_FALSE(Parse({}).help);
  EXPECT_TRUE(Parse({"--help"}).help);
  EXPECT_TRUE(Parse({"--version"}).version);
  EXPECT_TRUE(Parse({"--check_config", "--num_ranks=4"}).check_config);
  EXPECT_TRUE(Parse({"--help", "--no_such_flag=1"}).help) << "whoever asks for help gets it";
}

struct WrongFlags {
  std::vector<std::string> arguments;
  std::vector<std::string> parts;
};

class WrongFlagsTest : public testing::TestWithParam<WrongFlags> {};

TEST_P(WrongFlagsTest, AreRefused) {
  const absl::Status status = ParseCommandLine(GetParam().arguments).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  for (const std::string& part : GetParam().parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, WrongFlagsTest,
    testing::Values(
        WrongFlags{{"--num_rank=4"}, {"--num_rank: no such flag; did you mean num_ranks?", "the flags are"}},
        WrongFlags{{"--chekc_config", "x"}, {"did you mean check_config?"}}, WrongFlags{{"--=4"}, {"--: no such flag"}},
        WrongFlags{{"num_ranks=4"}, {"'num_ranks=4'", "flags only"}}, WrongFlags{{"-n", "4"}, {"'-n'"}},
        WrongFlags{{"--"}, {"'--'"}},
        WrongFlags{{"--num_ranks"}, {"--num_ranks: a value is required, as --num_ranks=VALUE"}},
        WrongFlags{{"--check_config=yes"}, {"--check_config takes no value"}},
        WrongFlags{{"--num_ranks=four"}, {"--num_ranks: 'four'; a whole number from 0 to 4294967295 is valid"}},
        WrongFlags{{"--num_ranks="}, {"--num_ranks: ''"}}, WrongFlags{{"--num_ranks=-1"}, {"'-1'"}},
        WrongFlags{{"--num_ranks=4.0"}, {"'4.0'"}}, WrongFlags{{"--num_ranks=0x4"}, {"'0x4'"}},
        WrongFlags{{"--num_ranks=4294967296"}, {"'4294967296'"}},
        WrongFlags{{"--memory_limit_bytes=18446744073709551616"}, {"from 0 to 18446744073709551615"}},
        WrongFlags{{"--backend=gpu"}, {"--backend: 'gpu'; valid are auto, cpu"}},
        WrongFlags{{"--backend=unspecified"}, {"'unspecified'"}}, WrongFlags{{"--backend=CPU"}, {"'CPU'"}},
        WrongFlags{{"--log_level=warnings"}, {"did you mean warning?"}},
        WrongFlags{{"--collective_timeout=30"}, {"'30'; a duration is valid, as 500ms, 20s or 1m30s"}},
        WrongFlags{{"--collective_timeout=inf"}, {"'inf'"}}, WrongFlags{{"--collective_timeout=soon"}, {"'soon'"}}));

TEST(CommandLineTest, MissingFileIsNamed) {
  const absl::Status status = ParseCommandLine({"--config=/nonexistent.conf"}).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'/nonexistent.conf' can't be read: No such file"));
}

TEST(ConfigHelpTest, TellsOfEveryFieldInOrder) {
  const Descriptor* descriptor = v1::DaemonConfig::descriptor();
  const std::string help = ConfigHelp();
  ASSERT_EQ(AllFieldHelp().size(), static_cast<size_t>(descriptor->field_count()));
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldHelp& field = AllFieldHelp()[static_cast<size_t>(i)];
    EXPECT_EQ(field.field, descriptor->field(i)->name());
    EXPECT_NE(field.otherwise, "");
    EXPECT_NE(field.text, "");
    EXPECT_THAT(help, AllOf(HasSubstr(std::string(field.field)), HasSubstr(std::string(field.otherwise)),
                            HasSubstr(std::string(field.text))));
  }
}

TEST(ClosestNameTest, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string> names = {"num_ranks", "backend", "log_level", "log_format"};
  EXPECT_EQ(ClosestName("num_rank", names), "num_ranks");
  EXPECT_EQ(ClosestName("bakcend", names), "backend");
  EXPECT_EQ(ClosestName("log_levle", names), "log_level");
  EXPECT_EQ(ClosestName("temperature", names), "");
  EXPECT_EQ(ClosestName("", names), "");
  EXPECT_EQ(ClosestName("x", {}), "");
  EXPECT_EQ(DidYouMean("temperature", names), "");
}

}  // namespace
}  // namespace holdfast
