// Abuse of the socket that hands memory over.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/memory_handover.h"
#include "tests/integration/raw_worker.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"
#include "tests/integration/toy_training.h"

namespace holdfast {
namespace {

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

UniqueFd ConnectTo(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {.sun_family = AF_UNIX};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

// What comes until the daemon closes the connection.
std::string ReadAll(const UniqueFd& fd) {
  std::string all;
  char buffer[4096];
  for (ssize_t count; AwaitReadable(fd.get(), Soon()) && (count = ::read(fd.get(), buffer, sizeof(buffer))) > 0;) {
    all.append(buffer, static_cast<size_t>(count));
  }
  return all;
}

class MemorySocketTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<TestCluster>> cluster = TestCluster::Start();
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    ASSERT_THAT(cluster_->RegisterModel(ToySpec("toy")), IsOk());
  }
  absl::StatusOr<ReceivedMemory> Receive(const std::string& token, size_t count) {
    return ReceiveMemory(cluster_->memory_socket(), token, count, Soon());
  }
  std::unique_ptr<RawWorker> Attach(uint32_t rank) {
    return std::make_unique<RawWorker>(cluster_->parameters(), AttachRequestOf("toy", rank));
  }

  std::unique_ptr<TestCluster> cluster_;
};

TEST_F(MemorySocketTest, Garbage_ConnectionIsClosed_RightTokenStillWorks) {
  const std::unique_ptr<RawWorker> worker = Attach(0);
  ASSERT_THAT(worker->status(), IsOk());
  for (const size_t size : {33, 64, 4096}) {
    const UniqueFd socket = ConnectTo(cluster_->memory_socket());
    ASSERT_TRUE(socket);
    const std::string garbage(size, '\xee');
    ASSERT_GT(::send(socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), 0);
    EXPECT_EQ(ReadAll(socket), "") << size;
  }
  EXPECT_THAT(Receive(worker->attached().memory_token(), worker->attached().arenas_size()), IsOk());
}

TEST_F(MemorySocketTest, WrongToken_IsRefusedWithReason) {
  const std::unique_ptr<RawWorker> worker = Attach(0);
  std::string token = worker->attached().memory_token();
  token[31] = static_cast<char>(token[31] ^ 1);
  EXPECT_THAT(Receive(token, 7), FailsWith(absl::StatusCode::kPermissionDenied, "of no lease that is held"));
  EXPECT_THAT(Receive(std::string(32, '\0'), 7), FailsWith(absl::StatusCode::kPermissionDenied, "of no lease"));
  EXPECT_EQ(cluster_->GetModel("toy").ranks(0).lease(), v1::LEASE_STATE_HELD);
}

TEST_F(MemorySocketTest, TokenShownTwice_SecondIsRefused_LeaseStays) {
  const std::unique_ptr<RawWorker> worker = Attach(0);
  const size_t count = worker->attached().arenas_size();
  const absl::StatusOr<ReceivedMemory> first = Receive(worker->attached().memory_token(), count);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->descriptors.size(), count);
  EXPECT_THAT(Receive(worker->attached().memory_token(), count),
              FailsWith(absl::StatusCode::kFailedPrecondition, "has been claimed with this token before"));
  EXPECT_EQ(cluster_->GetModel("toy").ranks(0).lease(), v1::LEASE_STATE_HELD);
}

TEST_F(MemorySocketTest, TokenOfEndedLease_IsRefused) {
  std::string token;
  {
    const std::unique_ptr<RawWorker> worker = Attach(0);
    token = worker->attached().memory_token();
  }
  ASSERT_TRUE(cluster_->AwaitModel(
      "toy", [](const v1::ModelStatus& model) { return model.ranks(0).lease() == v1::LEASE_STATE_FREE; }));
  EXPECT_THAT(Receive(token, 7), FailsWith(absl::StatusCode::kPermissionDenied, "of no lease that is held"));
}

TEST_F(MemorySocketTest, MemoryConnectionCloses_LeaseEnds_PeersAreTold) {
  const std::unique_ptr<RawWorker> worker = Attach(0), peer = Attach(1);
  {
    const absl::StatusOr<ReceivedMemory> memory =
        Receive(worker->attached().memory_token(), worker->attached().arenas_size());
    ASSERT_THAT(memory, IsOk());
  }
  ASSERT_TRUE(cluster_->AwaitModel("toy", [](const v1::ModelStatus& model) { return model.state().epoch() == 2; }));
  v1::BeginUpdateRequest begin;
  *begin.mutable_call() = peer->Header();
  EXPECT_THAT(CallOnce(cluster_->parameters(), &ParameterStub::BeginUpdate, begin),
              FailsWith(absl::StatusCode::kAborted, "rank 0 (process "));
}

TEST_F(MemorySocketTest, TooManyConnections_AreRefused_ThenServedAgain) {
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_GE(limit.rlim_cur, 4096U) << "this machine allows too few open files for the test";
  // A daemon that has the new limit, too.
  absl::StatusOr<std::unique_ptr<TestCluster>> cluster = TestCluster::Start();
  ASSERT_THAT(cluster, IsOk());
  cluster_ = *std::move(cluster);
  ASSERT_THAT(cluster_->RegisterModel(ToySpec("toy")), IsOk());
  const std::unique_ptr<RawWorker> worker = Attach(0);
  const std::string& token = worker->attached().memory_token();
  {
    std::vector<UniqueFd> idle;
    for (int i = 0; i < 1024; ++i) {
      idle.push_back(ConnectTo(cluster_->memory_socket()));
      ASSERT_TRUE(idle.back()) << i;
    }
    EXPECT_THAT(Receive(token, worker->attached().arenas_size()),
                FailsWith(absl::StatusCode::kResourceExhausted, "connections"));
  }
  // They are closed; the daemon sees that one after the other.
  absl::Status status;
  const absl::Time deadline = Soon();
  do {
    status = Receive(token, worker->attached().arenas_size()).status();
  } while (absl::IsResourceExhausted(status) && absl::Now() < deadline);
  EXPECT_THAT(status, IsOk());
}

}  // namespace
}  // namespace holdfast
