#include "server/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/metrics/metrics.h"
#include "tests/server/metrics/http_get.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Metrics with a value in every family.
class FullMetrics : public Metrics {
 public:
  FullMetrics() {
    SetBuildInfo("0.1.0", "cpu");
    RpcDone("holdfast.v1.AdminService/GetStatus", absl::StatusCode::kOk, absl::Milliseconds(1));
    CollectiveDone("all_gather", 4096, absl::Milliseconds(1));
    EmaDone(4096, absl::Milliseconds(1));
    Aborted("lease_lost");
    AddModel("demo");
    SetDeviceBytes("demo", "parameters", 4096);
    SetPosition("demo", 1, 1, false);
    SetEmaLag("demo", "default", 0);
    SetLeases("demo", "held", 4);
  }
};

std::unique_ptr<MetricsServer> StartAt(const std::string& address, const Metrics& metrics) {
  absl::StatusOr<std::unique_ptr<MetricsServer>> server = MetricsServer::Start(address, metrics);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

int PortOf(const MetricsServer& server) { return std::stoi(server.address().substr(server.address().rfind(':') + 1)); }

TEST(MetricsServerTest, ServesTheMetricsOnAFreePort) {
  const FullMetrics metrics;
  const auto server = StartAt("127.0.0.1:0", metrics);
  EXPECT_THAT(HttpGet(PortOf(*server), "/metrics"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("holdfast_step{model=\"demo\"} 1")));
}

TEST(MetricsServerTest, ServesNothingElse) {
  const FullMetrics metrics;
  const auto server = StartAt("127.0.0.1:0", metrics);
  for (const char* path : {"/", "/other", "/etc/passwd", "/../../etc/passwd"}) {
    EXPECT_THAT(HttpGet(PortOf(*server), path), StartsWith("HTTP/1.1 4")) << path;
  }
}

TEST(MetricsServerTest, IsCleanForPromtool) {
  const FullMetrics metrics;
  const auto server = StartAt("127.0.0.1:0", metrics);
  const std::string scrape = HttpBody(HttpGet(PortOf(*server), "/metrics"));
  ASSERT_THAT(scrape, HasSubstr("holdfast_build_info"));
  std::string file = std::filesystem::temp_directory_path() / "scrapeXXXXXX";
  ::close(::mkstemp(file.data()));
  std::ofstream(file) << scrape;
  FILE* promtool = ::popen(absl::StrCat("promtool check metrics < ", file, " 2>&1").c_str(), "r");
  ASSERT_NE(promtool, nullptr);
  std::string said;
  for (int c = 0; (c = std::fgetc(promtool)) != EOF;) said.push_back(static_cast<char>(c));
  EXPECT_EQ(::pclose(promtool), 0) << said << scrape;
  EXPECT_EQ(said, "");
  std::filesystem::remove(file);
}

TEST(MetricsServerTest, PortInUseIsNamed) {
  const FullMetrics metrics;
  const auto first = StartAt("127.0.0.1:0", metrics);
  const absl::Status second = MetricsServer::Start(first->address(), metrics).status();
  EXPECT_TRUE(absl::IsUnavailable(second));
  EXPECT_THAT(std::string(second.message()), AllOf(HasSubstr(first->address()), HasSubstr("Address already in use")));
}

TEST(MetricsServerTest, WrongAddressesAreNamed) {
  const FullMetrics metrics;
  for (const char* address : {"not-an-address:0", "127.0.0.1", "127.0.0.1:65536", "[::1]:0", ":0", "127.0.0.1:"}) {
    const absl::Status status = MetricsServer::Start(address, metrics).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << address;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("'", address, "'")));
  }
}

TEST(MetricsServerTest, PortIsFreeAgainAfterwards) {
  const FullMetrics metrics;
  auto server = StartAt("127.0.0.1:0", metrics);
  const int port = PortOf(*server);
  server.reset();
  EXPECT_EQ(HttpGet(port, "/metrics"), "");
}

}  // namespace
}  // namespace holdfast
