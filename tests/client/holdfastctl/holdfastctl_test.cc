#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "client/holdfastctl/run.h"
#include "common/unique_fd.h"
#include "tests/integration/test_cluster.h"
#include "tests/integration/toy_training.h"

namespace holdfast::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int32_t kWorld = 2;
constexpr uint64_t kSteps = 3;

struct Result {
  ExitCode exit_code;
  std::string out;
  std::string err;
};

Result Ctl(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const ExitCode exit_code = Run(arguments, out, err);
  return {.exit_code = exit_code, .out = out.str(), .err = err.str()};
}

// A daemon with the toy model at step 3, whose workers have gone.
class HoldfastctlTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TestCluster>> cluster =
        TestCluster::Start({.num_ranks = kWorld, .operator_address = true});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    ASSERT_TRUE(cluster_->RegisterModel(ToySpec("toy")).ok());
    Train();
    ASSERT_TRUE(cluster_->AwaitModel("toy", [](const v1::ModelStatus& model) {
      for (const v1::RankStatus& rank : model.ranks()) {
        if (rank.lease() != v1::LEASE_STATE_FREE) return false;
      }
      return true;
    }));
  }

  void Train() {
    auto client = Client::Connect({.address = cluster_->worker_socket()});
    ASSERT_TRUE(client.ok()) << client.status();
    // Nobody leaves before all are done: that would end the others' epoch.
    std::vector<std::unique_ptr<Worker>> workers;
    for (int32_t rank = 0; rank < kWorld; ++rank) {
      auto worker = (*client)->Attach("toy", Rank(rank));
      ASSERT_TRUE(worker.ok()) << worker.status();
      workers.push_back(*std::move(worker));
    }
    std::vector<std::thread> threads;
    for (const std::unique_ptr<Worker>& worker : workers) {
      threads.emplace_back([&worker] {
        const absl::Status trained = TrainToy(*worker, kWorld, kSteps);
        EXPECT_TRUE(trained.ok()) << trained;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // A command at the worker socket.
  Result AtDaemon(std::vector<std::string> arguments) const {
    arguments.push_back("--address=unix:" + cluster_->worker_socket());
    return Ctl(arguments);
  }
  std::string OutDirectory() const { return cluster_->directory().File("out"); }

  // The float32 elements of a file that pull has written.
  static std::vector<float> ReadNpy(const std::string& path) {
    const std::string file = ReadFile(path);
    EXPECT_GT(file.size(), 64u) << path;
    const size_t header = 10 + static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
    std::vector<float> values((file.size() - header) / sizeof(float));
    std::memcpy(values.data(), file.data() + header, values.size() * sizeof(float));
    return values;
  }
  static size_t NumFiles(const std::string& directory) {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
    return count;
  }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(HoldfastctlTest, StatusIsATable) {
  const Result result = AtDaemon({"status", "--ranks"});
  EXPECT_EQ(result.exit_code, kDone) << result.err;
  EXPECT_THAT(result.out, AllOf(StartsWith("holdfastd "), HasSubstr("(cpu), 2 ranks"), HasSubstr("MODEL  STATE"),
                                HasSubstr("toy"), HasSubstr("ready"), HasSubstr("FULL_SHARD 1×2"), HasSubstr("2 free"),
                                HasSubstr("fast@3"), HasSubstr("SEQUENCE")));
  EXPECT_EQ(result.err, "");
}

TEST_F(HoldfastctlTest, StatusAsJsonIsTheDaemonsAnswer) {
  const Result result = AtDaemon({"status", "--json"});
  EXPECT_EQ(result.exit_code, kDone) << result.err;
  v1::GetStatusResponse status;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(result.out, &status).ok()) << result.out;
  ASSERT_EQ(status.models_size(), 1);
  EXPECT_EQ(status.models(0).state().step(), kSteps);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\"num_ranks\": 2"), HasSubstr("\"draining\": false")));
}

TEST_F(HoldfastctlTest, ModelsListsTheSpecs) {
  const Result table = AtDaemon({"models"});
  EXPECT_EQ(table.exit_code, kDone) << table.err;
  EXPECT_THAT(table.out, AllOf(StartsWith("MODEL"), ContainsRegex("toy +2 "), HasSubstr("fast")));
  v1::ListModelsResponse models;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(AtDaemon({"models", "--json"}).out, &models).ok());
  grpc::ClientContext context;
  v1::ListModelsResponse expected;
  ASSERT_TRUE(cluster_->admin().ListModels(&context, {}, &expected).ok());
  ASSERT_EQ(expected.models_size(), 1);
  EXPECT_EQ(models.SerializeAsString(), expected.SerializeAsString());
}

TEST_F(HoldfastctlTest, OperatorAddressAndEnvironmentLeadToTheDaemon) {
  EXPECT_EQ(Ctl({"models", "--address", cluster_->Address("operator_address")}).exit_code, kDone);
  EXPECT_EQ(Ctl({"--address=" + cluster_->worker_socket(), "models"}).exit_code, kDone);
  ::setenv("HOLDFAST_SOCKET", cluster_->worker_socket().c_str(), 1);
  EXPECT_EQ(Ctl({"models"}).exit_code, kDone);
  ::unsetenv("HOLDFAST_SOCKET");
}

TEST_F(HoldfastctlTest, PullWritesEveryTensor) {
  const Result result = AtDaemon({"pull", "toy", "--out=" + OutDirectory()});
  EXPECT_EQ(result.exit_code, kDone) << result.err;
  EXPECT_THAT(result.out, HasSubstr("of step 3, in " + OutDirectory()));
  const ToyReference reference(kWorld, kSteps);
  EXPECT_EQ(NumFiles(OutDirectory()), reference.values().size());
  for (const auto& [name, values] : reference.values()) {
    EXPECT_EQ(ReadNpy(absl::StrCat(OutDirectory(), "/", name, ".npy")), values) << name;
  }
}

TEST_F(HoldfastctlTest, PullOfAnEmaByName) {
  const ToyReference reference(kWorld, kSteps);
  const auto& [name, values] = *reference.ema().begin();
  const Result result = AtDaemon({"pull", "toy", name, "--ema=fast", "--out=" + OutDirectory()});
  EXPECT_EQ(result.exit_code, kDone) << result.err;
  EXPECT_THAT(result.out, StartsWith("1 tensor, "));
  EXPECT_EQ(NumFiles(OutDirectory()), 1u);
  EXPECT_EQ(ReadNpy(absl::StrCat(OutDirectory(), "/", name, ".npy")), values);
}

TEST_F(HoldfastctlTest, PullConvertsIfAsked) {
  const std::string name = ToyReference(kWorld, kSteps).values().begin()->first;
  const Result result = AtDaemon({"pull", "toy", name, "--dtype=float64", "--out=" + OutDirectory()});
  EXPECT_EQ(result.exit_code, kDone) << result.err;
  EXPECT_THAT(ReadFile(absl::StrCat(OutDirectory(), "/", name, ".npy")), HasSubstr("'<f8'"));
}

TEST_F(HoldfastctlTest, PullThatFailsLeavesNoPart) {
  const Result unknown = AtDaemon({"pull", "toy", "no.such.tensor", "--out=" + OutDirectory()});
  EXPECT_EQ(unknown.exit_code, kFailed);
  EXPECT_THAT(unknown.err, AllOf(StartsWith("holdfastctl pull: "), HasSubstr("no.such.tensor")));
  EXPECT_EQ(NumFiles(OutDirectory()), 0u);
  std::ofstream(cluster_->directory().File("file")) << "in the way";
  EXPECT_EQ(AtDaemon({"pull", "toy", "--out=" + cluster_->directory().File("file")}).exit_code, kFailed);
}

TEST_F(HoldfastctlTest, DropForgetsTheModel) {
  const Result unknown = AtDaemon({"drop", "other"});
  EXPECT_EQ(unknown.exit_code, kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("other"));
  auto client = Client::Connect({.address = cluster_->worker_socket()});
  ASSERT_TRUE(client.ok());
  auto worker = (*client)->Attach("toy", Rank(0));
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(AtDaemon({"drop", "toy"}).exit_code, kFailed) << "a worker holds a lease";
  const Result dropped = AtDaemon({"drop", "toy", "--force"});
  EXPECT_EQ(dropped.exit_code, kDone) << dropped.err;
  EXPECT_THAT(dropped.out, AllOf(StartsWith("dropped toy, "), HasSubstr(" freed\n")));
  EXPECT_THAT(AtDaemon({"status"}).out, Not(HasSubstr("toy")));
}

TEST_F(HoldfastctlTest, DrainEndsTheDaemon) {
  const Result result = AtDaemon({"drain", "--grace_period=1m"});
  EXPECT_EQ(result.exit_code, kDone) << result.err;
  const std::optional<ProcessEnd> end = cluster_->daemon().Wait(absl::Now() + absl::Minutes(1));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0);
  EXPECT_EQ(AtDaemon({"status"}).exit_code, kUnreachable);
}

TEST(HoldfastctlUsageTest, HelpAndVersion) {
  const Result help = Ctl({"--help"});
  EXPECT_EQ(help.exit_code, kDone);
  for (const char* part :
       {"status", "models", "drop MODEL", "drain", "pull MODEL [NAME...]", "config check FILE", "Exit codes: 0"}) {
    EXPECT_THAT(help.out, HasSubstr(part));
  }
  EXPECT_EQ(Ctl({"help"}).out, help.out);
  EXPECT_THAT(Ctl({"drop", "--help"}).out, AllOf(StartsWith("holdfastctl drop MODEL [FLAG...]"), HasSubstr("--force")));
  EXPECT_THAT(Ctl({"--version"}).out, StartsWith("holdfastctl "));
}

TEST(HoldfastctlUsageTest, WrongArgumentsAreUsage) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "holdfastctl operates a holdfastd"},
      {{"stats"}, "'stats': no such command"},
      {{"config", "chek", "x"}, "'config chek': no such command"},
      {{"status", "extra"}, "too many words; the usage is: holdfastctl status"},
      {{"drop"}, "too few words; the usage is: holdfastctl drop MODEL"},
      {{"status", "--force"}, "--force: no such flag; there are --json"},
      {{"pull", "toy"}, "--out=DIRECTORY is required"},
      {{"pull", "toy", "--out=/tmp/x", "--dtype=int8"}, "--dtype: 'int8'; valid are float32"},
      {{"drain", "--grace_period=soon"}, "--grace_period: 'soon'"},
      {{"status", "--timeout=-1s"}, "--timeout: '-1s'"},
      {{"status", "--address=nowhere"}, "--address: 'nowhere'; unix:/PATH, /PATH and HOST:PORT are valid"},
      {{"status", "--address=unix:/" + std::string(107, 'p')}, "has 108 bytes; 1 to 107"},
  };
  for (const auto& [arguments, message] : cases) {
    const Result result = Ctl(arguments);
    EXPECT_EQ(result.exit_code, kUsage) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(result.out, "");
  }
}

TEST(HoldfastctlUsageTest, NoDaemonIsUnreachableAtOnce) {
  const Result socket = Ctl({"status", "--address=/nonexistent/w.sock", "--timeout=1h"});
  EXPECT_EQ(socket.exit_code, kUnreachable);
  EXPECT_THAT(socket.err, HasSubstr("there is no socket '/nonexistent/w.sock'"));
  // A port that is taken, and on which nobody listens.
  const UniqueFd taken(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string target = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  const Result port = Ctl({"status", "--address=" + target, "--timeout=1h"});
  EXPECT_EQ(port.exit_code, kUnreachable);
  EXPECT_THAT(port.err, HasSubstr("no holdfastd answers at '" + target + "'"));
}

TEST(HoldfastctlUsageTest, ConfigCheck) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("holdfastd.conf");
  std::ofstream(path) << "worker_socket: '" << directory.File("w") << "'\nnum_ranks: 4\n";
  const Result good = Ctl({"config", "check", path});
  EXPECT_EQ(good.exit_code, kDone) << good.err;
  EXPECT_THAT(good.out, AllOf(HasSubstr("num_ranks: 4"), HasSubstr("backend: BACKEND_CPU")));
  std::ofstream(path) << "num_ranks: 400\n";
  const Result bad = Ctl({"config", "check", path});
  EXPECT_EQ(bad.exit_code, kUsage);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("worker_socket: it is required"), HasSubstr(path + ":1:1: num_ranks: 400")));
  EXPECT_EQ(Ctl({"config", "check", directory.File("none")}).exit_code, kFailed);
}

}  // namespace
}  // namespace holdfast::ctl
