// A worker process is killed at every point of its life, on each rank in turn. Its peers are told who died, the state
// is the last committed step's bit for bit, and a new worker goes on to the same end as if nothing had happened.
#include <gtest/gtest.h>
#include <signal.h>

#include <latch>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"
#include "tests/integration/toy_training.h"
#include "tests/integration/worker_registry.h"

namespace holdfast {
namespace {

constexpr int32_t kWorld = 3;
constexpr uint64_t kLastStep = 4;
constexpr absl::Duration kPatience = absl::Seconds(60);

std::unique_ptr<Client> ConnectTo(const std::string& socket) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = socket});
  EXPECT_THAT(client, IsOk());
  return client.ok() ? *std::move(client) : nullptr;
}

// ----- the worker that is going to die -----

struct VictimOrders {
  std::string socket;
  std::string model;
  int32_t rank = 0;
  // Where it tells the test, and at which step.
  std::string point;
  uint64_t step = 0;
  // It stops there; otherwise it goes on into the call that follows.
  bool stops = true;

  std::vector<std::string> ToArguments() const {
    return {socket, model, absl::StrCat(rank), point, absl::StrCat(step), stops ? "stops" : "goes on"};
  }
  static VictimOrders From(const std::vector<std::string>& arguments) {
    VictimOrders orders = {
        .socket = arguments[0], .model = arguments[1], .point = arguments[3], .stops = arguments[5] == "stops"};
    return absl::SimpleAtoi(arguments[2], &orders.rank) && absl::SimpleAtoi(arguments[4], &orders.step)
               ? orders
               : VictimOrders{};
  }
};

int RunVictim(const std::vector<std::string>& arguments) {
  const VictimOrders orders = VictimOrders::From(arguments);
  const Worker* attached = nullptr;
  const auto hook = [&](std::string_view point) {
    if (point != orders.point || (attached != nullptr && attached->step().value() != orders.step)) return;
    Tell("there");
    std::string line;
    if (orders.stops) Hear(line);
  };
  std::unique_ptr<Client> client = ConnectTo(orders.socket);
  if (client == nullptr) return 1;
  hook("before_attach");
  absl::StatusOr<std::unique_ptr<Worker>> worker = client->Attach(orders.model, Rank(orders.rank));
  if (!worker.ok()) return 2;
  attached = worker->get();
  hook("after_attach");
  return TrainToy(**worker, kWorld, kLastStep, hook).ok() ? 0 : 3;
}

const WorkerRegistration kVictim("victim", &RunVictim);

// ----- the cases -----

struct DeathCase {
  std::string name;
  std::string point;
  uint64_t step = 2;
  // True: it dies in the call that comes after `point`, which has reached the daemon, while its peers have not made it.
  bool in_call = false;
  // The committed step when it is dead.
  uint64_t committed = 2;

  friend void PrintTo(const DeathCase& death, std::ostream* out) { *out << death.name; }
};

// Steps 1 and 3 are committed with the EMA in the same call, 2 and 4 without.
std::vector<DeathCase> DeathCases() {
  return {
      {.name = "BeforeAttach", .point = "before_attach", .committed = 0},
      {.name = "AfterAttach", .point = "after_attach", .step = 0, .committed = 0},
      {.name = "InInitialize", .point = "in_initialize", .step = 0, .committed = 0},
      {.name = "BeforeGather", .point = "before_gather"},
      {.name = "InGather", .point = "before_gather", .in_call = true},
      {.name = "AfterGather", .point = "after_gather"},
      {.name = "BeforeReduceScatter", .point = "before_reduce"},
      {.name = "InReduceScatter", .point = "before_reduce", .in_call = true},
      {.name = "AfterRelease", .point = "after_release"},
      {.name = "AfterReduceScatter", .point = "after_reduce"},
      {.name = "BeforeBeginUpdate", .point = "before_begin"},
      {.name = "AfterBeginUpdate", .point = "after_begin"},
      {.name = "HalfWritten", .point = "half_written"},
      {.name = "BeforeCommitUpdate", .point = "before_commit"},
      {.name = "InCommitUpdate", .point = "before_commit", .in_call = true},
      {.name = "InCommitUpdateWithEma", .point = "before_commit", .step = 1, .in_call = true, .committed = 1},
      {.name = "AfterCommitUpdate", .point = "after_commit", .step = 3, .committed = 3},
      {.name = "BeforeEmaStep", .point = "before_ema", .step = 3, .committed = 3},
      {.name = "AfterEmaStep", .point = "after_ema", .step = 3, .committed = 3},
  };
}

class WorkerDeathTest : public testing::TestWithParam<std::tuple<DeathCase, int32_t>> {
 protected:
  static void SetUpTestSuite() {
    absl::StatusOr<std::unique_ptr<TestCluster>> cluster = TestCluster::Start({.num_ranks = kWorld});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = cluster->release();
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override { ASSERT_NE(cluster_, nullptr); }

  static TestCluster* cluster_;
};

TestCluster* WorkerDeathTest::cluster_ = nullptr;

// A rank that lives on, in a thread of this process.
class Survivor {
 public:
  Survivor(const std::string& socket, const std::string& model, Rank rank) : client_(ConnectTo(socket)) {
    absl::StatusOr<std::unique_ptr<Worker>> worker = client_->Attach(model, rank);
    EXPECT_THAT(worker, IsOk());
    if (worker.ok()) worker_ = *std::move(worker);
  }

  void Start(const ToyHook& hook) {
    thread_ = std::jthread([this, hook] { status_ = TrainToy(*worker_, kWorld, kLastStep, hook); });
  }
  absl::Status Join() {
    thread_.join();
    return status_;
  }
  Worker& worker() { return *worker_; }
  bool attached() const { return worker_ != nullptr; }

 private:
  std::unique_ptr<Client> client_;
  std::unique_ptr<Worker> worker_;
  absl::Status status_;
  std::jthread thread_;
};

TEST_P(WorkerDeathTest, PeersAreTold_StateIsCommitted_NewWorkerGoesOn) {
  const auto& [death, victim_rank] = GetParam();
  const std::string model = absl::StrCat(death.name, "-", victim_rank);
  ASSERT_THAT(cluster_->RegisterModel(ToySpec(model)), IsOk());
  const std::string socket = cluster_->worker_socket();

  absl::StatusOr<std::unique_ptr<ChildProcess>> victim =
      StartWorkerProcess("victim", VictimOrders{.socket = socket,
                                                .model = model,
                                                .rank = victim_rank,
                                                .point = death.point,
                                                .step = death.step,
                                                .stops = !death.in_call}
                                       .ToArguments());
  ASSERT_THAT(victim, IsOk());
  std::vector<std::unique_ptr<Survivor>> survivors;
  for (int32_t rank = 0; rank < kWorld; ++rank) {
    if (rank == victim_rank) continue;
    survivors.push_back(std::make_unique<Survivor>(socket, model, Rank(rank)));
    ASSERT_TRUE(survivors.back()->attached());
  }
  // Where the victim is to die in a call, its peers stop short of it.
  std::latch victim_is_dead(1);
  for (const std::unique_ptr<Survivor>& survivor : survivors) {
    survivor->Start([&, &worker = survivor->worker(), &death = death](std::string_view point) {
      if (death.in_call && point == death.point && worker.step().value() == death.step) victim_is_dead.wait();
    });
  }

  ASSERT_TRUE((*victim)->ReadLine(absl::Now() + kPatience).has_value()) << "the victim did not get there";
  if (death.in_call) {
    ASSERT_TRUE(cluster_->AwaitModel(model, [&, rank = victim_rank](const v1::ModelStatus& status) {
      for (const v1::RankStatus& peer : status.ranks()) {
        if (peer.rank() != static_cast<uint32_t>(rank) && peer.sequence() >= status.ranks(rank).sequence())
          return false;
      }
      return true;
    })) << "the call did not reach the daemon";
  }
  (*victim)->Kill();
  victim_is_dead.count_down();

  const bool was_attached = death.point != "before_attach";
  if (was_attached) {
    const std::string who = absl::StrCat("rank ", victim_rank, " (process ", (*victim)->pid(), ")");
    for (const std::unique_ptr<Survivor>& survivor : survivors) {
      EXPECT_THAT(survivor->Join(), FailsWith(absl::StatusCode::kAborted, who));
      const absl::StatusOr<v1::ModelState> state = survivor->worker().Rejoin();
      ASSERT_THAT(state, IsOk());
      EXPECT_EQ(state->step(), death.committed);
      EXPECT_FALSE(state->torn());
    }
  }
  std::unique_ptr<Client> client = ConnectTo(socket);
  ASSERT_NE(client, nullptr);
  const absl::StatusOr<std::vector<ModelTensor>> values = client->Pull(model);
  if (death.committed > 0) {
    ASSERT_THAT(values, IsOk());
    const ToyReference reference(kWorld, death.committed);
    for (const ModelTensor& tensor : *values) {
      EXPECT_EQ(tensor.step.value(), death.committed);
      const std::vector<float>& expected = reference.values().at(tensor.name);
      const at::Tensor flat = tensor.tensor.contiguous();
      ASSERT_EQ(flat.numel(), static_cast<int64_t>(expected.size()));
      EXPECT_EQ(std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()), expected)
          << tensor.name;
    }
  } else {
    EXPECT_THAT(values, FailsWith(absl::StatusCode::kFailedPrecondition, "no parameters yet"));
  }

  Survivor successor(socket, model, Rank(victim_rank));
  ASSERT_TRUE(successor.attached());
  successor.Start([](std::string_view) {});
  if (was_attached) {
    for (const std::unique_ptr<Survivor>& survivor : survivors) survivor->Start([](std::string_view) {});
  }
  for (const std::unique_ptr<Survivor>& survivor : survivors) EXPECT_THAT(survivor->Join(), IsOk());
  EXPECT_THAT(successor.Join(), IsOk());
  EXPECT_THAT(CheckToy(*client, model, kWorld, kLastStep), IsOk());
}

INSTANTIATE_TEST_SUITE_P(EveryPoint, WorkerDeathTest,
                         testing::Combine(testing::ValuesIn(DeathCases()), testing::Range(0, kWorld)),
                         [](const testing::TestParamInfo<WorkerDeathTest::ParamType>& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "_Rank", std::get<1>(info.param));
                         });

}  // namespace
}  // namespace holdfast
