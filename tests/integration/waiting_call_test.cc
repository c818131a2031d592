// Calls that wait for peers who don't come: stopped, gone, somewhere else, or not awaited any more.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/client.h"
#include "tests/integration/raw_worker.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"
#include "tests/integration/toy_training.h"
#include "tests/integration/worker_registry.h"

namespace holdfast {
namespace {

constexpr int32_t kWorld = 2;
constexpr uint64_t kLastStep = 4;

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

std::unique_ptr<Worker> AttachTo(Client& client, Rank rank) {
  absl::StatusOr<std::unique_ptr<Worker>> worker = client.Attach("toy", rank);
  EXPECT_THAT(worker, IsOk());
  return worker.ok() ? *std::move(worker) : nullptr;
}

// Trains to the last step; after a failure it rejoins and goes on, as a trainer does.
absl::Status TrainThroughFailures(
    Worker& worker, const ToyHook& hook = [](std::string_view) {}) {
  while (true) {
    absl::Status status = TrainToy(worker, kWorld, kLastStep, hook);
    if (status.ok() || !(absl::IsAborted(status) || absl::IsDeadlineExceeded(status))) return status;
    if (absl::StatusOr<v1::ModelState> state = worker.Rejoin(); !state.ok()) return state.status();
  }
}

// Worker process: rank 1 of "toy" at the socket arguments[0]; stops before the gather of step arguments[1] until it
// hears something, then trains on; with arguments[2] it ends there instead, or has a child by then that outlives it.
int RunPeer(const std::vector<std::string>& arguments) {
  uint64_t step = 0;
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = arguments[0]});
  if (!client.ok() || !absl::SimpleAtoi(arguments[1], &step)) return 1;
  const std::unique_ptr<Worker> worker = AttachTo(**client, Rank(1));
  if (worker == nullptr) return 2;
  bool stopped = false;
  const absl::Status status = TrainThroughFailures(*worker, [&](std::string_view point) {
    if (point != "before_gather" || worker->step().value() != step || stopped) return;
    stopped = true;
    if (arguments[2] == "exit") std::exit(0);
    if (arguments[2] == "fork") {
      const pid_t child = ::fork();
      // It has every descriptor of its parent, and does nothing.
      while (child == 0) ::pause();
      Tell(absl::StrCat(child));
    } else {
      Tell("there");
    }
    std::string line;
    Hear(line);
  });
  return status.ok() ? 0 : 3;
}

const WorkerRegistration kPeer("peer", &RunPeer);

class WaitingCallTest : public testing::Test {
 protected:
  void SetUp() override { Start("60s"); }
  void Start(const std::string& collective_timeout) {
    absl::StatusOr<std::unique_ptr<TestCluster>> cluster =
        TestCluster::Start({.num_ranks = kWorld, .flags = {"--collective_timeout=" + collective_timeout}});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    ASSERT_THAT(cluster_->RegisterModel(ToySpec("toy")), IsOk());
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = cluster_->worker_socket()});
    ASSERT_THAT(client, IsOk());
    client_ = *std::move(client);
  }
  std::unique_ptr<ChildProcess> StartPeer(uint64_t step, const std::string& then) {
    absl::StatusOr<std::unique_ptr<ChildProcess>> peer =
        StartWorkerProcess("peer", {cluster_->worker_socket(), absl::StrCat(step), then});
    EXPECT_THAT(peer, IsOk());
    return *std::move(peer);
  }
  // Both ranks of "toy", initialised, made of bare calls.
  void AttachRaw() {
    for (uint32_t rank = 0; rank < kWorld; ++rank) {
      raw_.push_back(std::make_unique<RawWorker>(cluster_->parameters(), AttachRequestOf("toy", rank)));
      ASSERT_THAT(raw_.back()->status(), IsOk());
      v1::BeginUpdateRequest begin;
      *begin.mutable_call() = raw_.back()->Header(0);
      begin.set_kind(v1::UPDATE_KIND_INITIALIZE);
      ASSERT_THAT(CallOnce(cluster_->parameters(), &ParameterStub::BeginUpdate, begin), IsOk());
    }
    std::vector<std::future<grpc::Status>> committed;
    for (const std::unique_ptr<RawWorker>& worker : raw_) {
      v1::CommitUpdateRequest commit;
      *commit.mutable_call() = worker->Header(1);
      committed.push_back(worker->Start(&ParameterStub::CommitUpdate, commit));
    }
    for (std::future<grpc::Status>& commit : committed) ASSERT_THAT(commit.get(), IsOk());
  }
  v1::GatherRequest Gather(int rank, const std::string& unit, uint64_t sequence) {
    v1::GatherRequest request;
    *request.mutable_call() = raw_[rank]->Header(sequence);
    request.set_unit(unit);
    return request;
  }
  bool AwaitSequence(int rank, uint64_t sequence) {
    return cluster_->AwaitModel("toy",
                                [=](const v1::ModelStatus& model) { return model.ranks(rank).sequence() == sequence; });
  }

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<RawWorker>> raw_;
};

TEST_F(WaitingCallTest, PeerStopped_DeadlineExceededNamesIt_BothGoOnAfterwards) {
  Start("1s");
  const std::unique_ptr<ChildProcess> peer = StartPeer(2, "stay");
  const std::unique_ptr<Worker> worker = AttachTo(*client_, Rank(0));
  ASSERT_NE(worker, nullptr);
  std::future<absl::Status> trained =
      std::async(std::launch::async, [&] { return TrainToy(*worker, kWorld, kLastStep); });
  ASSERT_TRUE(peer->ReadLine(Soon()).has_value());
  peer->Signal(SIGSTOP);
  ASSERT_TRUE(peer->WriteLine("go on"));
  EXPECT_THAT(trained.get(),
              FailsWith(absl::StatusCode::kDeadlineExceeded, absl::StrCat("rank 1 (process ", peer->pid(), ", at ")));

  peer->Signal(SIGCONT);
  ASSERT_THAT(worker->Rejoin(), IsOk());
  EXPECT_THAT(TrainThroughFailures(*worker), IsOk());
  const std::optional<ProcessEnd> end = peer->Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0);
  EXPECT_THAT(CheckToy(*client_, "toy", kWorld, kLastStep), IsOk());
}

TEST_F(WaitingCallTest, NoPeerAtAll_DeadlineExceededSaysSo) {
  Start("200ms");
  AttachRaw();
  raw_.pop_back();
  ASSERT_TRUE(cluster_->AwaitModel("toy", [](const v1::ModelStatus& model) { return model.state().epoch() == 2; }));
  ASSERT_THAT(raw_[0]->Rejoin(), IsOk());
  EXPECT_THAT(CallOnce(cluster_->parameters(), &ParameterStub::Gather, Gather(0, "embed", 0)),
              FailsWith(absl::StatusCode::kDeadlineExceeded, "for rank 1 (no worker)"));
}

TEST_F(WaitingCallTest, PeerExitsBetweenSteps_AbortedNamesIt_SuccessorGoesOn) {
  const std::unique_ptr<ChildProcess> peer = StartPeer(2, "exit");
  const std::unique_ptr<Worker> worker = AttachTo(*client_, Rank(0));
  ASSERT_NE(worker, nullptr);
  EXPECT_THAT(TrainToy(*worker, kWorld, kLastStep),
              FailsWith(absl::StatusCode::kAborted, absl::StrCat("rank 1 (process ", peer->pid(), ")")));
  const std::optional<ProcessEnd> end = peer->Wait(Soon());
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->exit_code, 0);
  const absl::StatusOr<v1::ModelState> state = worker->Rejoin();
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->step(), 2U);
  const std::unique_ptr<Worker> successor = AttachTo(*client_, Rank(1));
  ASSERT_NE(successor, nullptr);
  std::future<absl::Status> trained = std::async(std::launch::async, [&] { return TrainThroughFailures(*successor); });
  EXPECT_THAT(TrainThroughFailures(*worker), IsOk());
  EXPECT_THAT(trained.get(), IsOk());
  EXPECT_THAT(CheckToy(*client_, "toy", kWorld, kLastStep), IsOk());
}

TEST_F(WaitingCallTest, GrandchildHasTheSockets_WorkersDeathEndsTheLeaseAllTheSame) {
  const std::unique_ptr<ChildProcess> peer = StartPeer(1, "fork");
  const std::unique_ptr<Worker> worker = AttachTo(*client_, Rank(0));
  ASSERT_NE(worker, nullptr);
  std::future<absl::Status> trained =
      std::async(std::launch::async, [&] { return TrainToy(*worker, kWorld, kLastStep); });
  const std::optional<std::string> line = peer->ReadLine(Soon());
  int32_t grandchild = 0;
  ASSERT_TRUE(line.has_value() && absl::SimpleAtoi(*line, &grandchild) && grandchild > 0);
  peer->Kill();
  EXPECT_THAT(trained.get(),
              FailsWith(absl::StatusCode::kAborted, absl::StrCat("rank 1 (process ", peer->pid(), ") died")));
  EXPECT_TRUE(cluster_->AwaitModel(
      "toy", [](const v1::ModelStatus& model) { return model.ranks(1).lease() == v1::LEASE_STATE_FREE; }));
  EXPECT_EQ(::kill(grandchild, 0), 0) << "the grandchild was to live";
  EXPECT_NE(AttachTo(*client_, Rank(1)), nullptr);
  ::kill(grandchild, SIGKILL);
}

TEST_F(WaitingCallTest, RanksDisagree_BothAreToldBoth) {
  AttachRaw();
  std::future<grpc::Status> first = raw_[0]->Start(&ParameterStub::Gather, Gather(0, "embed", 2));
  ASSERT_TRUE(AwaitSequence(0, 3));
  const std::string text = "rank 0 asks for Gather of unit 'embed', rank 1 for Gather of unit 'block'";
  EXPECT_THAT(CallOnce(cluster_->parameters(), &ParameterStub::Gather, Gather(1, "block", 2)),
              FailsWith(absl::StatusCode::kFailedPrecondition, text));
  EXPECT_THAT(first.get(), FailsWith(absl::StatusCode::kFailedPrecondition, text));
}

TEST_F(WaitingCallTest, DeadlineOfTheCaller_IsHonoured_PeerIsNotHeldUp) {
  AttachRaw();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  v1::GatherResponse response;
  EXPECT_THAT(cluster_->parameters().Gather(&context, Gather(0, "embed", 2), &response),
              FailsWith(absl::StatusCode::kDeadlineExceeded, ""));
  EXPECT_THAT(CallOnce(cluster_->parameters(), &ParameterStub::Gather, Gather(1, "embed", 2)), IsOk());
}

TEST_F(WaitingCallTest, CallerCancels_CallStops_PeerIsNotHeldUp) {
  AttachRaw();
  grpc::ClientContext context;
  std::future<grpc::Status> cancelled = std::async(std::launch::async, [&] {
    v1::GatherResponse response;
    return cluster_->parameters().Gather(&context, Gather(0, "embed", 2), &response);
  });
  ASSERT_TRUE(AwaitSequence(0, 3));
  context.TryCancel();
  EXPECT_THAT(cancelled.get(), FailsWith(absl::StatusCode::kCancelled, ""));
  EXPECT_THAT(CallOnce(cluster_->parameters(), &ParameterStub::Gather, Gather(1, "embed", 2)), IsOk());
}

TEST_F(WaitingCallTest, PullIsCancelledAgainAndAgain_WhatItStagedIsGivenBack) {
  absl::StatusOr<std::unique_ptr<TestCluster>> cluster =
      TestCluster::Start({.num_ranks = kWorld, .flags = {"--pull_staging_bytes=9000000"}});
  ASSERT_THAT(cluster, IsOk());
  cluster_ = *std::move(cluster);
  v1::ModelSpec spec = ToySpec("toy");
  v1::ParameterSpec& large = *spec.mutable_units(0)->add_parameters();
  large.set_name("large");
  large.add_shape(2000000);
  large.set_dtype(v1::DATA_TYPE_FLOAT32);
  ASSERT_THAT(cluster_->RegisterModel(spec), IsOk());
  AttachRaw();
  v1::PullRequest request;
  request.set_model("toy");
  request.add_names("large");
  // Only one fits into the staging memory at a time, so each needs what the one before it has given back.
  for (int i = 0; i < 20; ++i) {
    grpc::Status status;
    v1::PullResponse response;
    const absl::Time deadline = Soon();
    bool started = false;
    do {
      grpc::ClientContext context;
      const auto reader = cluster_->parameters().Pull(&context, request);
      started = reader->Read(&response);
      if (started) context.TryCancel();
      while (reader->Read(&response)) {
      }
      status = reader->Finish();
    } while (!started && status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && absl::Now() < deadline);
    ASSERT_TRUE(started) << i << ": " << status.error_message();
  }
}

}  // namespace
}  // namespace holdfast
