// What Connect refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/connection.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

TEST(ConnectTest, OptionsThatCannotBeAreRefusedAndNamed) {
  const struct {
    std::string message;
    ClientOptions options;
  } cases[] = {
      {"address is empty", {}},
      {"neither the path of a socket (with a '/') nor HOST:PORT", {.address = "localhost"}},
      {"has 200 bytes; 1 to 107", {.address = "/" + std::string(199, 'x')}},
      {"has 0 bytes", {.address = "unix:"}},
      {"connect_timeout is 0", {.address = "/tmp/x", .connect_timeout = absl::ZeroDuration()}},
      {"call_timeout is -1s", {.address = "/tmp/x", .call_timeout = absl::Seconds(-1)}},
      {"reattach_timeout is 0", {.address = "/tmp/x", .reattach_timeout = absl::ZeroDuration()}},
  };
  for (const auto& test : cases) {
    const auto connection = Connection::Open(test.options);
    EXPECT_EQ(connection.status().code(), absl::StatusCode::kInvalidArgument) << test.message;
    EXPECT_THAT(std::string(connection.status().message()), HasSubstr(test.message));
  }
}

TEST(ConnectTest, NobodyListens_IsUnavailable) {
  const auto connection =
      Connection::Open({.address = "/nonexistent/worker.sock", .connect_timeout = absl::Milliseconds(10)});
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(connection.status().message()), HasSubstr("/nonexistent/worker.sock"));
}

}  // namespace
}  // namespace holdfast
