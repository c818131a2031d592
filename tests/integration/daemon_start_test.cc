// What holdfastd says to a configuration it can't serve with: an exit code, and a line with name, value and way out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"

namespace holdfast {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Ended {
  int exit_code = -1;
  std::string log;
};

// Runs the daemon until it ends by itself.
Ended RunDaemon(const TemporaryDirectory& directory, const std::vector<std::string>& flags) {
  const std::string log = directory.File("log");
  absl::StatusOr<std::unique_ptr<ChildProcess>> daemon =
      ChildProcess::Start({.executable = DaemonExecutable(), .arguments = flags, .error_file = log});
  EXPECT_THAT(daemon, IsOk());
  if (!daemon.ok()) return {};
  const std::optional<ProcessEnd> end = (*daemon)->Wait(absl::Now() + absl::Seconds(60));
  EXPECT_TRUE(end.has_value()) << "it serves";
  return {.exit_code = end.has_value() ? end->exit_code : -1, .log = ReadFile(log)};
}

struct BadStart {
  std::string name;
  // Beside what a daemon with two ranks needs, and after it.
  std::vector<std::string> flags;
  std::string says;

  friend void PrintTo(const BadStart& bad, std::ostream* out) { *out << bad.name; }
};

class BadFlagTest : public testing::TestWithParam<BadStart> {};

TEST_P(BadFlagTest, EndsWithTwo_SaysWhatAndWhy) {
  const TemporaryDirectory directory;
  std::vector<std::string> flags = DaemonFlags(directory, 2);
  flags.insert(flags.end(), GetParam().flags.begin(), GetParam().flags.end());
  const Ended ended = RunDaemon(directory, flags);
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.log, AllOf(HasSubstr("holdfastd: "), HasSubstr(GetParam().says)));
  struct stat file {};
  EXPECT_NE(::stat(directory.File("ready.json").c_str(), &file), 0) << "it must not say that it is ready";
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadFlagTest,
    testing::ValuesIn(std::vector<BadStart>{
        {"UnknownFlag", {"--num_rank=2"}, "num_rank: no such"},
        {"NoFlag", {"serve"}, "'serve': holdfastd takes flags only"},
        {"NoValue", {"--log_level"}, "--log_level: a value is required"},
        {"UnknownEnum", {"--backend=tpu"}, "backend: "},
        {"CudaBackend", {"--backend=cuda"}, "backend: this version has no CUDA backend; use cpu or auto"},
        {"NoNumber", {"--num_ranks=two"}, "num_ranks: "},
        {"NoRanks", {"--num_ranks=0"}, "num_ranks: 0; 1 to 64 is valid"},
        {"TooManyRanks", {"--num_ranks=65"}, "num_ranks: 65; 1 to 64 is valid"},
        {"NegativeRanks", {"--num_ranks=-1"}, "num_ranks: "},
        {"RanksOverflow", {"--num_ranks=4294967297"}, "num_ranks: "},
        {"TooManyThreads", {"--compute_threads=257"}, "compute_threads: 257"},
        {"MemoryLimitTooLarge", {"--memory_limit_bytes=18446744073709551615"}, "memory_limit_bytes: "},
        {"StagingTooSmall", {"--pull_staging_bytes=4095"}, "pull_staging_bytes: 4095; 4096 to "},
        {"TimeoutZero", {"--collective_timeout=0s"}, "collective_timeout: 0; 1ms to 24h is valid"},
        {"TimeoutTooLong", {"--collective_timeout=25h"}, "collective_timeout: 25h"},
        {"TimeoutNoDuration", {"--collective_timeout=soon"}, "collective_timeout: "},
        {"GraceNegative", {"--drain_grace_period=-1s"}, "drain_grace_period: "},
        {"NoSuchGroup",
         {"--socket_group=no-such-group"},
         "socket_group: 'no-such-group': this machine has no such group"},
        {"AddressWithoutPort", {"--operator_address=127.0.0.1"}, "operator_address: '127.0.0.1': host:port is valid"},
        {"AddressWithBadPort", {"--metrics_address=127.0.0.1:65536"}, "metrics_address: '127.0.0.1:65536'"},
        {"NotLoopback",
         {"--operator_address=0.0.0.0:7700"},
         "operator_address: '0.0.0.0:7700': '0.0.0.0' is no loopback address"},
        {"MetricsNotLoopback",
         {"--metrics_address=192.0.2.1:9464"},
         "metrics_address: '192.0.2.1:9464': '192.0.2.1' is no loopback address"},
        {"NoSocket", {"--worker_socket="}, "worker_socket: it is required"},
        {"SocketPathTooLong", {absl::StrCat("--worker_socket=/tmp/", std::string(103, 'x'))}, "has 108 bytes"},
        {"MemoryPathTooLong", {absl::StrCat("--worker_socket=/tmp/", std::string(97, 'x'))}, "memory_socket: "},
        {"NoSocketDirectory",
         {"--worker_socket=/nonexistent/w"},
         "worker_socket: '/nonexistent/w': there is no directory '/nonexistent'; make it first"},
        {"NoConfigFile", {"--config=/nonexistent.txtpb"}, "'/nonexistent.txtpb' can't be read"},
        {"ConfigIsDirectory", {"--config=/tmp"}, "'/tmp' can't be read: it is a directory"},
    }),
    [](const testing::TestParamInfo<BadStart>& info) { return info.param.name; });

struct BadFile {
  std::string name;
  std::string text;
  // Behind the file's name.
  std::string says;

  friend void PrintTo(const BadFile& bad, std::ostream* out) { *out << bad.name; }
};

class BadConfigFileTest : public testing::TestWithParam<BadFile> {};

TEST_P(BadConfigFileTest, EndsWithTwo_NamesLineAndField) {
  const TemporaryDirectory directory;
  const std::string file = directory.File("c");
  std::ofstream(file) << GetParam().text;
  const Ended ended = RunDaemon(directory, {"--config=" + file});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.log, HasSubstr(absl::StrCat(file, ":", GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadConfigFileTest,
    testing::ValuesIn(std::vector<BadFile>{
        {"UnknownField", "num_ranks: 2\nworker_sock: '/tmp/w'\n", "2:1: worker_sock: no such field; did you mean"},
        {"UnknownEnum", "num_ranks: 2\nbackend: BACKEND_TPU\n", "2:10: backend: "},
        {"NoNumber", "num_ranks: 'two'\n", "1:12: num_ranks: "},
        {"Overflow", "num_ranks: 99999999999\n", "1:12: num_ranks: "},
        {"TooManyRanks", "worker_socket: '/tmp/w'\n\nnum_ranks: 1000\n", "3:1: num_ranks: 1000; 1 to 64"},
        {"Twice", "num_ranks: 2\nnum_ranks: 3\n", "2:"},
        {"CutShort", "num_ranks: 2\nworker_socket: '/tmp", "2:"},
        {"Binary", std::string("\x01\x02\x00\xff", 4), "1:1: "},
    }),
    [](const testing::TestParamInfo<BadFile>& info) { return info.param.name; });

// A TCP listener of ours on a port that the kernel chose.
class TakenPort {
 public:
  TakenPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd_.get(), 1) == 0 &&
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      port_ = ntohs(address.sin_port);
    }
  }
  int port() const { return port_; }

 private:
  UniqueFd fd_;
  int port_ = 0;
};

TEST(DaemonStartTest, PortInUse_EndsWithOne_NamesTheAddress) {
  const TakenPort taken;
  ASSERT_GT(taken.port(), 0);
  for (const std::string field : {"operator_address", "metrics_address"}) {
    const TemporaryDirectory directory;
    const std::string address = absl::StrCat("127.0.0.1:", taken.port());
    std::vector<std::string> flags = DaemonFlags(directory, 2);
    flags.push_back(absl::StrCat("--", field, "=", address));
    const Ended ended = RunDaemon(directory, flags);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_THAT(ended.log, AllOf(HasSubstr(field), HasSubstr(address)));
  }
}

TEST(DaemonStartTest, SocketOfAnotherDaemon_EndsWithOne_OtherServesOn) {
  absl::StatusOr<std::unique_ptr<TestCluster>> first = TestCluster::Start();
  ASSERT_THAT(first, IsOk());
  const TemporaryDirectory directory;
  for (const std::string& flag : {absl::StrCat("--worker_socket=", (*first)->worker_socket()),
                                  absl::StrCat("--memory_socket=", (*first)->memory_socket())}) {
    std::vector<std::string> flags = DaemonFlags(directory, 2);
    // The second daemon must not fall over the first one's other socket.
    flags.push_back(absl::StrCat("--memory_socket=", directory.File("m")));
    flags.push_back(flag);
    const Ended ended = RunDaemon(directory, flags);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_THAT(ended.log, HasSubstr("another process listens there"));
  }
  EXPECT_EQ((*first)->GetStatus().num_ranks(), 2U);
}

TEST(DaemonStartTest, StaleSocketOfKilledDaemon_IsUsedAgain) {
  absl::StatusOr<std::unique_ptr<TestCluster>> first = TestCluster::Start();
  ASSERT_THAT(first, IsOk());
  (*first)->daemon().Kill();
  struct stat file {};
  ASSERT_EQ(::stat((*first)->worker_socket().c_str(), &file), 0) << "a killed daemon leaves its socket";
  absl::StatusOr<std::unique_ptr<TestCluster>> second =
      TestCluster::Start({.flags = {absl::StrCat("--worker_socket=", (*first)->worker_socket())}});
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*second)->Address("worker_socket"), (*first)->worker_socket());
  // The first one's stubs lead to the second daemon now.
  EXPECT_EQ((*first)->GetStatus().num_ranks(), 2U);
}

TEST(DaemonStartTest, FileThatIsNoSocket_EndsWithOne_FileStays) {
  const TemporaryDirectory directory;
  std::ofstream(directory.File("w")) << "precious";
  const Ended ended = RunDaemon(directory, DaemonFlags(directory, 2));
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.log, HasSubstr("is there and is no socket"));
  EXPECT_EQ(ReadFile(directory.File("w")), "precious");
}

TEST(DaemonStartTest, Sockets_AreTheOwnersOnly) {
  absl::StatusOr<std::unique_ptr<TestCluster>> cluster = TestCluster::Start();
  ASSERT_THAT(cluster, IsOk());
  for (const std::string& path : {(*cluster)->worker_socket(), (*cluster)->memory_socket()}) {
    struct stat file {};
    ASSERT_EQ(::stat(path.c_str(), &file), 0) << path;
    EXPECT_EQ(file.st_mode & 0777, 0600U) << path;
  }
}

TEST(DaemonStartTest, FlagGoesBeforeFile) {
  const TemporaryDirectory directory;
  std::ofstream(directory.File("c")) << "num_ranks: 2\nmemory_limit_bytes: 1000000\n";
  absl::StatusOr<std::unique_ptr<TestCluster>> cluster =
      TestCluster::Start({.num_ranks = 3, .flags = {"--config=" + directory.File("c")}});
  ASSERT_THAT(cluster, IsOk());
  EXPECT_EQ((*cluster)->GetStatus().num_ranks(), 3U);
  EXPECT_EQ((*cluster)->GetStatus().memory_limit_bytes(), 1000000U);
}

}  // namespace
}  // namespace holdfast
