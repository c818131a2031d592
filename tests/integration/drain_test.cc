// How a daemon goes down: health first, then the leases, then the process, with exit code 0.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "tests/integration/raw_worker.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"
#include "tests/integration/toy_training.h"

namespace holdfast {
namespace {

constexpr int32_t kWorld = 2;

// grpc.health.v1.Health/Check of the whole server; its answer is one enum in field 1: 1 is SERVING, 2 NOT_SERVING.
int Health(TestCluster& cluster) {
  grpc::GenericStub stub(cluster.NewChannel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  EXPECT_TRUE(status.ok()) << status.error_message();
  std::vector<grpc::Slice> slices;
  return response.Dump(&slices).ok() && slices.size() == 1 && slices[0].size() == 2 ? slices[0].begin()[1] : -1;
}

void Drain(TestCluster& cluster, absl::Duration grace) {
  grpc::ClientContext context;
  v1::DrainRequest request;
  request.mutable_grace_period()->set_seconds(absl::ToInt64Seconds(grace));
  v1::DrainResponse response;
  EXPECT_THAT(cluster.admin().Drain(&context, request, &response), IsOk());
}

bool AwaitDraining(TestCluster& cluster) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (absl::Now() < deadline) {
    if (cluster.GetStatus().draining()) return true;
  }
  return false;
}

void ExpectCleanEnd(TestCluster& cluster) {
  const std::optional<ProcessEnd> end = cluster.daemon().Wait(absl::Now() + absl::Seconds(60));
  ASSERT_TRUE(end.has_value()) << "it lives on";
  EXPECT_EQ(end->signal, 0);
  EXPECT_EQ(end->exit_code, 0);
}

class DrainTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TestCluster>> cluster =
        TestCluster::Start({.num_ranks = kWorld, .flags = {"--drain_grace_period=1h"}});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    ASSERT_THAT(cluster_->RegisterModel(ToySpec("toy")), IsOk());
  }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(DrainTest, SigtermInTheMiddleOfAStep_StepIsFinished_ThenTheDaemonEnds) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = cluster_->worker_socket()});
  ASSERT_THAT(client, IsOk());
  EXPECT_EQ(Health(*cluster_), 1);
  std::vector<std::unique_ptr<Worker>> workers;
  absl::Notification told;
  for (int32_t rank = 0; rank < kWorld; ++rank) {
    WorkerOptions options;
    if (rank == 0) {
      options.on_event = [&](const v1::GroupEvent& event) {
        if (event.draining()) told.Notify();
      };
    }
    absl::StatusOr<std::unique_ptr<Worker>> worker = (*client)->Attach("toy", Rank(rank), options);
    ASSERT_THAT(worker, IsOk());
    workers.push_back(*std::move(worker));
  }
  // Both ranks stop in step 2, with their shards half written, until the drain has begun.
  absl::Notification both_may_go;
  std::promise<void> stopped[kWorld];
  std::vector<std::future<absl::Status>> trained;
  for (int32_t rank = 0; rank < kWorld; ++rank) {
    trained.push_back(std::async(std::launch::async, [&, rank] {
      bool first = true;
      return TrainToy(*workers[rank], kWorld, 2, [&](std::string_view point) {
        if (point != "half_written" || workers[rank]->step() != Step(1) || !first) return;
        first = false;
        stopped[rank].set_value();
        both_may_go.WaitForNotification();
      });
    }));
  }
  for (std::promise<void>& rank : stopped) rank.get_future().wait();
  cluster_->daemon().Signal(SIGTERM);
  told.WaitForNotification();
  EXPECT_EQ(Health(*cluster_), 2);
  EXPECT_TRUE(workers[0]->draining());
  EXPECT_THAT(cluster_->RegisterModel(ToySpec("late")), FailsWith(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_THAT((*client)->Attach("toy", Rank(0)), FailsWith(absl::StatusCode::kUnavailable, "draining"));

  both_may_go.Notify();
  for (std::future<absl::Status>& rank : trained) EXPECT_THAT(rank.get(), IsOk());
  EXPECT_THAT(CheckToy(**client, "toy", kWorld, 2), IsOk());
  workers.clear();
  ExpectCleanEnd(*cluster_);
}

TEST_F(DrainTest, NoLease_SigtermEndsItAtOnce) {
  cluster_->daemon().Signal(SIGTERM);
  ExpectCleanEnd(*cluster_);
}

TEST_F(DrainTest, DrainCall_HealthTurnsFirst_EndsWithTheLastLease) {
  auto worker = std::make_unique<RawWorker>(cluster_->parameters(), AttachRequestOf("toy", 0));
  ASSERT_THAT(worker->status(), IsOk());
  Drain(*cluster_, absl::Hours(1));
  ASSERT_TRUE(AwaitDraining(*cluster_));
  EXPECT_EQ(Health(*cluster_), 2);
  EXPECT_EQ(cluster_->GetModel("toy").ranks(0).lease(), v1::LEASE_STATE_HELD);
  worker.reset();
  ExpectCleanEnd(*cluster_);
}

TEST_F(DrainTest, GraceOver_LeasesAreEnded) {
  const RawWorker worker(cluster_->parameters(), AttachRequestOf("toy", 0));
  ASSERT_THAT(worker.status(), IsOk());
  Drain(*cluster_, absl::ZeroDuration());
  ExpectCleanEnd(*cluster_);
}

TEST_F(DrainTest, SecondSigterm_EndsTheGracePeriod) {
  const RawWorker worker(cluster_->parameters(), AttachRequestOf("toy", 0));
  ASSERT_THAT(worker.status(), IsOk());
  cluster_->daemon().Signal(SIGTERM);
  ASSERT_TRUE(AwaitDraining(*cluster_));
  cluster_->daemon().Signal(SIGTERM);
  ExpectCleanEnd(*cluster_);
}

TEST_F(DrainTest, DaemonEnds_SocketsAreGone) {
  cluster_->daemon().Signal(SIGINT);
  ExpectCleanEnd(*cluster_);
  EXPECT_NE(::access(cluster_->worker_socket().c_str(), F_OK), 0);
  EXPECT_NE(::access(cluster_->memory_socket().c_str(), F_OK), 0);
}

}  // namespace
}  // namespace holdfast
