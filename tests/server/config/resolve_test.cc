#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/config/command_line.h"
#include "server/config/config.h"
#include "server/config/config_file.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::DaemonConfig Minimal() {
  v1::DaemonConfig config;
  config.set_worker_socket("/tmp/worker.sock");
  config.set_num_ranks(4);
  return config;
}

TEST(ResolveConfigTest, FillsDefaultsIn) {
  const absl::StatusOr<Config> config = ResolveConfig(Minimal());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->worker_socket, "/tmp/worker.sock");
  EXPECT_EQ(config->memory_socket, "/tmp/worker.sock.memory");
  EXPECT_EQ(config->socket_group, std::nullopt);
  EXPECT_EQ(config->operator_address, std::nullopt);
  EXPECT_EQ(config->metrics_address, std::nullopt);
  EXPECT_EQ(config->backend, v1::BACKEND_CPU);
  EXPECT_EQ(config->num_ranks, 4);
  EXPECT_EQ(config->memory_limit_bytes, 0);
  EXPECT_GE(config->compute_threads, 1);
  EXPECT_EQ(config->collective_timeout, absl::Seconds(60));
  EXPECT_EQ(config->drain_grace_period, absl::Seconds(20));
  EXPECT_EQ(config->pull_staging_bytes, int64_t{4} << 30);
  EXPECT_EQ(config->log_format, v1::LOG_FORMAT_TEXT);
  EXPECT_EQ(config->log_level, v1::LOG_LEVEL_INFO);
  EXPECT_EQ(config->ready_file, "");
}

TEST(ResolveConfigTest, TakesWhatIsSet) {
  v1::DaemonConfig in = Minimal();
  in.set_memory_socket("/tmp/memory.sock");
  in.set_socket_group("root");
  in.set_operator_address("localhost:7700");
  in.set_metrics_address("127.1.2.3:0");
  in.set_backend(v1::BACKEND_AUTO);
  in.set_memory_limit_bytes(1 << 30);
  in.set_compute_threads(256);
  in.mutable_collective_timeout()->set_nanos(1'000'000);
  in.mutable_drain_grace_period();
  in.set_pull_staging_bytes(4096);
  in.set_log_format(v1::LOG_FORMAT_JSON);
  in.set_log_level(v1::LOG_LEVEL_ERROR);
  in.set_ready_file("/tmp/ready.json");
  const absl::StatusOr<Config> config = ResolveConfig(in);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->memory_socket, "/tmp/memory.sock");
  EXPECT_EQ(config->socket_group, gid_t{0});
  EXPECT_EQ(config->operator_address->ToString(), "127.0.0.1:7700");
  EXPECT_EQ(config->metrics_address->ToString(), "127.1.2.3:0");
  EXPECT_EQ(config->backend, v1::BACKEND_CPU);
  EXPECT_EQ(config->memory_limit_bytes, 1 << 30);
  EXPECT_EQ(config->compute_threads, 256);
  EXPECT_EQ(config->collective_timeout, absl::Milliseconds(1));
  EXPECT_EQ(config->drain_grace_period, absl::ZeroDuration());
  EXPECT_EQ(config->pull_staging_bytes, 4096);
  EXPECT_EQ(config->log_format, v1::LOG_FORMAT_JSON);
  EXPECT_EQ(config->log_level, v1::LOG_LEVEL_ERROR);
  EXPECT_EQ(config->ready_file, "/tmp/ready.json");
}

TEST(ResolveConfigTest, RelativePathsBecomeAbsolute) {
  v1::DaemonConfig in = Minimal();
  in.set_worker_socket("w.sock");
  const absl::StatusOr<Config> config = ResolveConfig(in);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->worker_socket, std::filesystem::current_path() / "w.sock");
  EXPECT_EQ(config->memory_socket, std::filesystem::current_path() / "w.sock.memory");
}

TEST(ResolveConfigTest, LongestPathIsTaken) {
  v1::DaemonConfig in = Minimal();
  in.set_worker_socket("/tmp/" + std::string(102, 'w'));
  in.set_memory_socket("/tmp/m");
  EXPECT_TRUE(ResolveConfig(in).ok());
}

TEST(ResolveConfigTest, TextReadsBackAsTheSame) {
  v1::DaemonConfig in = Minimal();
  in.set_operator_address("[::1]:7700");
  in.mutable_collective_timeout()->set_nanos(1'500'000);
  const absl::StatusOr<Config> config = ResolveConfig(in);
  ASSERT_TRUE(config.ok()) << config.status();
  v1::DaemonConfig again;
  FieldOrigins origins;
  ASSERT_TRUE(ParseConfigText("text", config->ToText(), again, origins).ok());
  const absl::StatusOr<Config> resolved = ResolveConfig(again);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->ToText(), config->ToText());
  EXPECT_THAT(config->ToText(), AllOf(HasSubstr("backend: BACKEND_CPU"), HasSubstr("seconds: 20"),
                                      HasSubstr("memory_socket: \"/tmp/worker.sock.memory\"")));
}

struct WrongConfig {
  std::function<void(v1::DaemonConfig&)> change;
  std::string message;
};

class WrongConfigTest : public testing::TestWithParam<WrongConfig> {};

TEST_P(WrongConfigTest, IsRefusedWithItsFieldOnly) {
  v1::DaemonConfig in = Minimal();
  GetParam().change(in);
  const absl::Status status = ResolveConfig(in).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(GetParam().message));
  EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("\n")));
}

#define CHANGE(statement) [](v1::DaemonConfig& config) { config.statement; }
INSTANTIATE_TEST_SUITE_P(
    Cases, WrongConfigTest,
    testing::Values(
        // Sockets.
        WrongConfig{CHANGE(clear_worker_socket()), "worker_socket: it is required"},
        WrongConfig{CHANGE(set_worker_socket("/tmp/" + std::string(103, 'w'))),
                    "worker_socket: '/tmp/" + std::string(103, 'w') + "' has 108 bytes; a socket's path has 107"},
        WrongConfig{CHANGE(set_worker_socket("/tmp/" + std::string(100, 'w'))),
                    "memory_socket: '/tmp/" + std::string(100, 'w') + ".memory' has 112 bytes"},
        WrongConfig{CHANGE(set_worker_socket("/nonexistent/w")),
                    "worker_socket: '/nonexistent/w': there is no directory '/nonexistent'; make it first"},
        WrongConfig{CHANGE(set_worker_socket("/tmp/")), "worker_socket: '/tmp/' is a directory"},
        WrongConfig{CHANGE(set_worker_socket("/tmp/a\nb")), "worker_socket: a control character"},
        WrongConfig{CHANGE(set_worker_socket(std::string("/tmp/a\0b", 8))), "worker_socket: a control character"},
        WrongConfig{CHANGE(set_memory_socket("/tmp/worker.sock")),
                    "memory_socket: '/tmp/worker.sock' is the worker_socket"},
        WrongConfig{CHANGE(set_memory_socket("/nonexistent/m")), "memory_socket: '/nonexistent/m': there is no"},
        WrongConfig{CHANGE(set_socket_group("no-such-group")), "socket_group: 'no-such-group': this machine has no"},
        // Addresses.
        WrongConfig{CHANGE(set_operator_address("0.0.0.0:7700")), "operator_address: '0.0.0.0:7700': '0.0.0.0' is no"},
        WrongConfig{CHANGE(set_operator_address("10.0.0.1:1")), "operator_address: '10.0.0.1:1'"},
        WrongConfig{CHANGE(set_operator_address("example.com:1")), "operator_address: 'example.com:1'"},
        WrongConfig{CHANGE(set_operator_address("[::]:7700")), "operator_address: '[::]:7700'"},
        WrongConfig{CHANGE(set_operator_address("::1:7700")), "operator_address: '::1:7700': an IPv6 address needs"},
        WrongConfig{CHANGE(set_operator_address(":7700")), "operator_address: ':7700': '' is no loopback"},
        WrongConfig{CHANGE(set_operator_address("127.0.0.1")), "operator_address: '127.0.0.1': host:port is valid"},
        WrongConfig{CHANGE(set_operator_address("127.0.0.1:")), "operator_address: '127.0.0.1:': port ''; 0 to 65535"},
        WrongConfig{CHANGE(set_operator_address("127.0.0.1:65536")),
                    "operator_address: '127.0.0.1:65536': port '65536'; 0 to 65535 is valid"},
        WrongConfig{CHANGE(set_operator_address("127.0.0.1:-1")), "operator_address: '127.0.0.1:-1': port '-1'"},
        WrongConfig{CHANGE(set_operator_address("127.0.0.1: 1")), "operator_address: '127.0.0.1: 1': port ' 1'"},
        WrongConfig{CHANGE(set_operator_address("127.0.0.1:http")), "operator_address: '127.0.0.1:http': port 'http'"},
        WrongConfig{CHANGE(set_metrics_address("192.168.0.1:0")), "metrics_address: '192.168.0.1:0'"},
        WrongConfig{CHANGE(set_metrics_address("[::1]:0")), "metrics_address: '[::1]:0': metrics are served on IPv4"},
        WrongConfig{[](v1::DaemonConfig& config) {
                      config.set_operator_address("localhost:7700");
                      config.set_metrics_address("127.0.0.1:7700");
                    },
                    "metrics_address: '127.0.0.1:7700' is the operator_address"},
        // Choices.
        WrongConfig{CHANGE(set_backend(v1::BACKEND_CUDA)),
                    "backend: this version has no CUDA backend; use cpu or auto"},
        WrongConfig{CHANGE(set_backend(static_cast<v1::Backend>(7))), "backend: 7; valid are auto, cpu"},
        WrongConfig{CHANGE(set_log_format(static_cast<v1::LogFormat>(7))), "log_format: 7; valid are text, json"},
        WrongConfig{CHANGE(set_log_level(static_cast<v1::LogLevel>(-1))), "log_level: -1; valid are debug, info"},
        // Numbers.
        WrongConfig{CHANGE(clear_num_ranks()), "num_ranks: 0; 1 to 64 is valid, and it is required"},
        WrongConfig{CHANGE(set_num_ranks(65)), "num_ranks: 65; 1 to 64 is valid"},
        WrongConfig{CHANGE(set_num_ranks(UINT32_MAX)), "num_ranks: 4294967295; 1 to 64"},
        WrongConfig{CHANGE(set_compute_threads(257)), "compute_threads: 257; 1 to 256 is valid, or 0"},
        WrongConfig{CHANGE(set_memory_limit_bytes(UINT64_MAX)), "memory_limit_bytes: 18446744073709551615; "},
        WrongConfig{CHANGE(set_pull_staging_bytes(4095)), "pull_staging_bytes: 4095; 4096 to "},
        WrongConfig{CHANGE(set_pull_staging_bytes(UINT64_MAX)), "pull_staging_bytes: 18446744073709551615; "},
        // Times.
        WrongConfig{CHANGE(mutable_collective_timeout()), "collective_timeout: 0; 1ms to 24h is valid"},
        WrongConfig{CHANGE(mutable_collective_timeout()->set_nanos(999'999)), "collective_timeout: 999.999us; 1ms to"},
        WrongConfig{CHANGE(mutable_collective_timeout()->set_seconds(86401)), "collective_timeout: 24h1s; 1ms to"},
        WrongConfig{CHANGE(mutable_collective_timeout()->set_seconds(INT64_MAX)),
                    "collective_timeout: 2562047788015215h30m7s; 1ms"},
        WrongConfig{CHANGE(mutable_drain_grace_period()->set_seconds(-1)), "drain_grace_period: -1s; 0 to 24h"},
        WrongConfig{CHANGE(mutable_drain_grace_period()->set_nanos(1'000'000'000)),
                    "drain_grace_period: 1000000000 nanos; less than a second"},
        WrongConfig{[](v1::DaemonConfig& config) {
                      config.mutable_drain_grace_period()->set_seconds(5);
                      config.mutable_drain_grace_period()->set_nanos(-1);
                    },
                    "drain_grace_period: -1 nanos"},
        // The ready file.
        WrongConfig{CHANGE(set_ready_file("/nonexistent/ready")), "ready_file: '/nonexistent/ready': there is no"},
        WrongConfig{CHANGE(set_ready_file("/tmp/worker.sock")), "ready_file: '/tmp/worker.sock' is the path of a"}));
#undef CHANGE

TEST(ResolveConfigTest, EveryWrongFieldHasALineWithItsOrigin) {
  v1::DaemonConfig in;
  FieldOrigins origins;
  ASSERT_TRUE(
      ParseConfigText("my.conf", "worker_socket: '/tmp/w'\n\nnum_ranks: 100\ncompute_threads: 999\n", in, origins)
          .ok());
  origins.Set("compute_threads", "--");
  const absl::Status status = ResolveConfig(in, origins).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  EXPECT_THAT(lines, ElementsAre(StartsWith("my.conf:3:1: num_ranks: 100; "), StartsWith("--compute_threads: 999; ")));
}

}  // namespace
}  // namespace holdfast
