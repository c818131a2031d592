// A real Prometheus scrapes a daemon that does real work; what it then knows is right.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "tests/integration/http_get.h"
#include "tests/integration/raw_worker.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"
#include "tests/integration/toy_training.h"

namespace holdfast {
namespace {

constexpr int32_t kWorld = 2;
constexpr uint64_t kSteps = 4;
constexpr const char* kPrometheus = "/usr/bin/prometheus";
constexpr const char* kPromtool = "/usr/bin/promtool";

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// As query strings want it.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
  return escaped;
}

// Prometheus with a configuration of its own, that scrapes one target five times a second.
class PrometheusServer {
 public:
  explicit PrometheusServer(const std::string& target) {
    std::ofstream(directory_.File("p.yml"))
        << "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"
        << "scrape_configs:\n"
        << "- {job_name: holdfast, static_configs: [{targets: ['" << target << "']}]}\n";
    absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(
        {.executable = kPrometheus,
         .arguments = {"--config.file=" + directory_.File("p.yml"), "--storage.tsdb.path=" + directory_.File("d"),
                       "--web.listen-address=127.0.0.1:0"},
         .error_file = directory_.File("log")});
    EXPECT_THAT(process, IsOk());
    if (process.ok()) process_ = *std::move(process);
    // Port 0 is a free one; which one, its log tells.
    const std::string before = "msg=\"Listening on\" address=";
    for (const absl::Time deadline = Soon(); absl::Now() < deadline && address_.empty();) {
      const std::string log = Log();
      const size_t found = log.find(before);
      if (found == std::string::npos) continue;
      const size_t begin = found + before.size(), end = log.find('\n', begin);
      if (end != std::string::npos) address_ = log.substr(begin, end - begin);
    }
  }

  bool listens() const { return !address_.empty(); }
  std::string Log() const { return ReadFile(directory_.File("log")); }

  // The one value of an instant query; nothing if there is none, or more than one.
  std::optional<double> Query(const std::string& query) const {
    const absl::StatusOr<std::string> answer = HttpGet(address_, "/api/v1/query?query=" + Escaped(query));
    google::protobuf::Struct json;
    if (!answer.ok() || !google::protobuf::util::JsonStringToMessage(*answer, &json).ok()) return std::nullopt;
    const auto& result = json.fields().at("data").struct_value().fields().at("result").list_value().values();
    double value = 0;
    if (result.size() != 1 ||
        !absl::SimpleAtod(result[0].struct_value().fields().at("value").list_value().values(1).string_value(),
                          &value)) {
      return std::nullopt;
    }
    return value;
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<ChildProcess> process_;
  std::string address_;
};

class PrometheusTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(kPrometheus, X_OK) != 0 || ::access(kPromtool, X_OK) != 0) {
      GTEST_SKIP() << kPrometheus << " or " << kPromtool << " is missing; install Debian's package prometheus";
    }
    absl::StatusOr<std::unique_ptr<TestCluster>> cluster =
        TestCluster::Start({.num_ranks = kWorld, .metrics_address = true});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    ASSERT_THAT(cluster_->RegisterModel(ToySpec("toy")), IsOk());
  }

  // Both ranks train, and hold their leases until the test ends.
  void Train() {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = cluster_->worker_socket()});
    ASSERT_THAT(client, IsOk());
    client_ = *std::move(client);
    std::vector<std::future<absl::Status>> trained;
    for (int32_t rank = 0; rank < kWorld; ++rank) {
      absl::StatusOr<std::unique_ptr<Worker>> worker = client_->Attach("toy", Rank(rank));
      ASSERT_THAT(worker, IsOk());
      workers_.push_back(*std::move(worker));
    }
    for (const std::unique_ptr<Worker>& worker : workers_) {
      trained.push_back(std::async(std::launch::async, [&] { return TrainToy(*worker, kWorld, kSteps); }));
    }
    for (std::future<absl::Status>& rank : trained) ASSERT_THAT(rank.get(), IsOk());
  }

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

TEST_F(PrometheusTest, Scrape_KnowsTheSeries_WithTheirValues) {
  Train();
  const absl::StatusOr<std::vector<ModelTensor>> pulled = client_->Pull("toy", {.names = {"embed.weight"}});
  ASSERT_THAT(pulled, IsOk());
  v1::GatherRequest of_unknown;
  of_unknown.mutable_call()->set_model("nope");
  ASSERT_FALSE(CallOnce(cluster_->parameters(), &ParameterStub::Gather, of_unknown).ok());
  const v1::GetStatusResponse status = cluster_->GetStatus();

  const PrometheusServer prometheus(cluster_->Address("metrics_address"));
  ASSERT_TRUE(prometheus.listens()) << prometheus.Log();
  const std::string method = "{method=\"holdfast.v1.ParameterService/";
  // Each step gathers two units of float32: 39 elements (36 trainable, 3 frozen) and 17, each flat parameter padded to
  // two shards, on both ranks; and reduces 36 and 17 (padded to 18) to their shards.
  const double gathered = 4.0 * kWorld * (36 + 4 + 18) * kSteps;
  const double reduced = 4.0 * (36 + 18) * kSteps;
  const std::vector<std::pair<std::string, double>> expected = {
      {"up{job=\"holdfast\"}", 1},
      {"holdfast_step{model=\"toy\"}", kSteps},
      {"holdfast_epoch{model=\"toy\"}", 1},
      {"holdfast_torn{model=\"toy\"}", 0},
      {"holdfast_leases{model=\"toy\",state=\"held\"}", kWorld},
      {"holdfast_leases{model=\"toy\",state=\"free\"}", 0},
      {"holdfast_ema_lag_steps{model=\"toy\",ema=\"fast\"}", 0},
      {"sum(holdfast_device_bytes{model=\"toy\"})", static_cast<double>(status.memory_used_bytes())},
      {"holdfast_draining", 0},
      {"count(holdfast_build_info{version=\"" + status.version() + "\",backend=\"cpu\"})", 1},
      {"holdfast_gather_hits_total", 0},
      {"holdfast_gather_misses_total", 2.0 * kWorld * kSteps},
      {"holdfast_collective_bytes_total{kind=\"all_gather\"}", gathered},
      {"holdfast_collective_bytes_total{kind=\"reduce_scatter\"}", reduced},
      {"holdfast_collective_duration_seconds_count{kind=\"all_gather\"}", 2.0 * kSteps},
      {"holdfast_pulled_bytes_total", 35 * 4},
      // The initialisation is one more.
      {"holdfast_rpcs_total" + method + "CommitUpdate\",code=\"OK\"}", kWorld * (kSteps + 1.0)},
      {"holdfast_rpc_duration_seconds_count" + method + "CommitUpdate\"}", kWorld * (kSteps + 1.0)},
      {"holdfast_rpcs_total" + method + "Gather\",code=\"NOT_FOUND\"}", 1},
      // 36 and 17 trainable elements, padded, in float32, each step.
      {"holdfast_ema_bytes_total", reduced},
  };
  for (const auto& [query, value] : expected) {
    std::optional<double> known;
    // The first scrapes may be yet to come.
    for (const absl::Time deadline = Soon(); !known.has_value() && absl::Now() < deadline;) {
      known = prometheus.Query(query);
    }
    ASSERT_TRUE(known.has_value()) << query;
    EXPECT_EQ(*known, value) << query;
  }

  // A worker's death, too, comes through.
  workers_.pop_back();
  std::optional<double> aborts;
  for (const absl::Time deadline = Soon(); aborts != 1 && absl::Now() < deadline;) {
    aborts = prometheus.Query("sum(holdfast_aborts_total)");
  }
  EXPECT_EQ(aborts, 1);
  std::optional<double> epoch;
  for (const absl::Time deadline = Soon(); epoch != 2 && absl::Now() < deadline;) {
    epoch = prometheus.Query("holdfast_epoch{model=\"toy\"}");
  }
  EXPECT_EQ(epoch, 2);
}

TEST_F(PrometheusTest, Scrape_IsCleanUnderPromtool) {
  Train();
  const absl::StatusOr<std::string> scrape = HttpGet(cluster_->Address("metrics_address"), "/metrics");
  ASSERT_THAT(scrape, IsOk());
  ASSERT_NE(scrape->find("holdfast_step"), std::string::npos);
  const TemporaryDirectory directory;
  std::ofstream(directory.File("metrics")) << *scrape;
  absl::StatusOr<std::unique_ptr<ChildProcess>> promtool =
      ChildProcess::Start({.executable = "/bin/sh",
                           .arguments = {"-c", absl::StrCat(kPromtool, " check metrics < ", directory.File("metrics"))},
                           .error_file = directory.File("log")});
  ASSERT_THAT(promtool, IsOk());
  const std::optional<ProcessEnd> end = (*promtool)->Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0) << ReadFile(directory.File("log"));
  EXPECT_EQ(ReadFile(directory.File("log")), "");
}

}  // namespace
}  // namespace holdfast
