#include "server/config/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kWholeFile[] = R"(# A comment.
worker_socket: "/run/holdfast/worker.sock"
num_ranks: 4  backend: BACKEND_CPU
collective_timeout { seconds: 30 }
  log_level: LOG_LEVEL_DEBUG
)";

TEST(ConfigFileTest, ReadsFieldsAndWhereTheyAre) {
  v1::DaemonConfig config;
  FieldOrigins origins;
  ASSERT_TRUE(ParseConfigText("my.conf", kWholeFile, config, origins).ok());
  EXPECT_EQ(config.worker_socket(), "/run/holdfast/worker.sock");
  EXPECT_EQ(config.num_ranks(), 4u);
  EXPECT_EQ(config.backend(), v1::BACKEND_CPU);
  EXPECT_EQ(config.collective_timeout().seconds(), 30);
  EXPECT_EQ(origins.Describe("worker_socket"), "my.conf:2:1: worker_socket");
  EXPECT_EQ(origins.Describe("backend"), "my.conf:3:15: backend");
  EXPECT_EQ(origins.Describe("collective_timeout"), "my.conf:4:1: collective_timeout");
  EXPECT_EQ(origins.Describe("log_level"), "my.conf:5:3: log_level");
  EXPECT_EQ(origins.Describe("log_format"), "log_format") << "not set";
}

TEST(ConfigFileTest, EmptyTextIsAConfiguration) {
  v1::DaemonConfig config;
  FieldOrigins origins;
  EXPECT_TRUE(ParseConfigText("my.conf", "", config, origins).ok());
}

struct WrongText {
  std::string text;
  std::string place;
  std::vector<std::string> parts;
};

class WrongTextTest : public testing::TestWithParam<WrongText> {};

TEST_P(WrongTextTest, IsRefusedWithItsPlace) {
  v1::DaemonConfig config;
  FieldOrigins origins;
  const absl::Status status = ParseConfigText("my.conf", GetParam().text, config, origins);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  const std::string message(status.message());
  EXPECT_THAT(message, StartsWith("my.conf:" + GetParam().place + ": ")) << GetParam().text;
  for (const std::string& part : GetParam().parts) EXPECT_THAT(message, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, WrongTextTest,
    testing::Values(
        // Unknown names, with what was meant and what there is.
        WrongText{"num_rank: 4", "1:1", {"num_rank: no such field; did you mean num_ranks?", "the fields are worker_"}},
        WrongText{"num_ranks: 4\n  wroker_socket: '/x'", "2:3", {"did you mean worker_socket?"}},
        WrongText{"colour: 4", "1:1", {"colour: no such field (the fields are"}},
        WrongText{"[foo.bar]: 3", "1:9", {"foo.bar", "the fields are"}},
        WrongText{
            "collective_timeout { second: 3 }", "1:22", {"collective_timeout: ", "second", "a duration is valid"}},
        // Wrong types.
        WrongText{"num_ranks: abc", "1:12", {"num_ranks: Expected integer, got: abc", "0 to 4294967295 is valid"}},
        WrongText{"num_ranks: \"4\"", "1:12", {"num_ranks", "got: \"4\""}},
        WrongText{"num_ranks: -1", "1:12", {"num_ranks", "a whole number from 0"}},
        WrongText{"num_ranks: 1.5", "1:12", {"num_ranks", "got: 1.5"}},
        WrongText{"num_ranks: 99999999999", "1:12", {"num_ranks: Integer out of range (99999999999)"}},
        WrongText{"memory_limit_bytes: true", "1:21", {"memory_limit_bytes", "18446744073709551615"}},
        WrongText{"worker_socket: 4", "1:16", {"worker_socket: Expected string, got: 4; a text in quotes is valid"}},
        WrongText{"collective_timeout: 30", "1:21", {"collective_timeout: ", "{ seconds: 30 }"}},
        WrongText{"collective_timeout { seconds: x }", "1:31", {"collective_timeout: Expected integer, got: x"}},
        // Wrong values of enums.
        WrongText{"backend: gpu", "1:10", {"backend: ", "\"gpu\"", "valid are BACKEND_AUTO, BACKEND_CPU"}},
        WrongText{"backend: gpu\nnum_ranks: 4", "1:10", {"backend: ", "\"gpu\""}},
        WrongText{"backend: cpu", "1:10", {"did you mean BACKEND_CPU?"}},
        WrongText{"log_level: LOG_LEVEL_DEBUGG", "1:12", {"did you mean LOG_LEVEL_DEBUG?"}},
        WrongText{"backend: \"BACKEND_CPU\"", "1:10", {"backend: Expected integer or identifier"}},
        // Wrong forms.
        WrongText{"num_ranks: 4\nnum_ranks: 5", "2:1", {"num_ranks: ", "multiple times"}},
        WrongText{"worker_socket: \"abc", "1:20", {"worker_socket: Unexpected end of string"}},
        WrongText{"worker_socket \"x\"", "1:15", {"worker_socket: Expected \":\""}},
        WrongText{"num_ranks", "1:10", {"num_ranks: Expected \":\""}},
        WrongText{"num_ranks: 4\n}", "2:1", {"my.conf:2:1: Expected identifier, got: } (the fields are"}}));

TEST(ConfigFileTest, ReadsAFile) {
  std::string path = std::filesystem::temp_directory_path() / "configXXXXXX";
  ::close(::mkstemp(path.data()));
  std::ofstream(path) << kWholeFile;
  v1::DaemonConfig config;
  FieldOrigins origins;
  EXPECT_TRUE(ReadConfigFile(path, config, origins).ok());
  EXPECT_EQ(config.num_ranks(), 4u);
  std::filesystem::resize_file(path, 0);
  EXPECT_TRUE(ReadConfigFile(path, config, origins).ok());
  std::filesystem::remove(path);
  const absl::Status missing = ReadConfigFile(path, config, origins);
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(std::string(missing.message()), AllOf(HasSubstr(path), HasSubstr("No such file")));
}

TEST(ConfigFileTest, DirectoryIsNoFile) {
  v1::DaemonConfig config;
  FieldOrigins origins;
  const absl::Status status = ReadConfigFile("/", config, origins);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is a directory"));
}

}  // namespace
}  // namespace holdfast
