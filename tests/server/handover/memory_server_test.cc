#include "server/handover/memory_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/sinks/null_sink.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/memory_handover.h"
#include "tests/server/handover/worker_process.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Token(char c) { return std::string(kMemoryTokenBytes, c); }
absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

// Claims that hand out memfds, a token once, and write down what they are told.
class RecordedClaims : public MemoryClaims {
 public:
  void Offer(const std::string& token, size_t count) {
    absl::MutexLock lock(&mu_);
    offers_[token] = count;
  }
  // The events so far, as soon as there are `count` of them.
  std::vector<std::string> WaitForEvents(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto enough = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return events_.size() >= count; };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(60)));
    return events_;
  }

  absl::StatusOr<std::vector<UniqueFd>> ClaimMemory(std::string_view token, pid_t pid) override {
    absl::MutexLock lock(&mu_);
    const auto offer = offers_.find(std::string(token));
    if (offer == offers_.end()) return absl::PermissionDeniedError("no lease has this token");
    events_.push_back(absl::StrCat("claimed ", std::string(token.substr(0, 1)), " by ", pid));
    std::vector<UniqueFd> memory;
    for (size_t i = 0; i < offer->second; ++i) {
      memory.emplace_back(::memfd_create("arena", MFD_CLOEXEC));
      EXPECT_EQ(::ftruncate(memory.back().get(), static_cast<off_t>(i + 1)), 0);
    }
    offers_.erase(offer);
    return memory;
  }
  void ConnectionClosed(std::string_view token) override { Record("closed", token); }
  void ProcessDied(std::string_view token, pid_t) override { Record("died", token); }

 private:
  void Record(const char* what, std::string_view token) {
    absl::MutexLock lock(&mu_);
    events_.push_back(absl::StrCat(what, " ", std::string(token.substr(0, 1))));
  }

  absl::Mutex mu_;
  std::map<std::string, size_t> offers_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> events_ ABSL_GUARDED_BY(mu_);
};

class MemoryServerTest : public testing::Test {
 protected:
  MemoryServerTest() {
    std::string directory = std::filesystem::temp_directory_path() / "memoryserverXXXXXX";
    options_.path = std::string(::mkdtemp(directory.data())) + "/memory";
    options_.answer_timeout = absl::Minutes(10);
  }
  ~MemoryServerTest() override {
    server_.reset();
    std::filesystem::remove_all(std::filesystem::path(options_.path).parent_path());
  }

  void Start() {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
    absl::StatusOr<std::unique_ptr<MemoryServer>> server = MemoryServer::Create(options_, claims_, logger);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  UniqueFd Connect() {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    options_.path.copy(address.sun_path, kMaxSocketPathBytes);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  // Everything the server sends until it hangs up, which it must.
  static size_t BytesUntilHangUp(const UniqueFd& socket) {
    size_t bytes = 0;
    char byte = 0;
    while (::recv(socket.get(), &byte, 1, 0) == 1) ++bytes;
    return bytes;
  }
  static std::string Claimed(char token, pid_t pid = ::getpid()) {
    return absl::StrCat("claimed ", std::string(1, token), " by ", pid);
  }
  // Claims and gives back: what was asked of the server before has been dealt with when it is done.
  void RoundTrip() {
    claims_.Offer(Token('z'), 1);
    ASSERT_TRUE(ReceiveMemory(options_.path, Token('z'), 1, Soon()).ok());
  }

  RecordedClaims claims_;
  MemoryServer::Options options_;
  std::unique_ptr<MemoryServer> server_;
};

TEST_F(MemoryServerTest, HandsOverInOrderAndNoticesTheEnd) {
  Start();
  claims_.Offer(Token('a'), 200);
  {
    const absl::StatusOr<ReceivedMemory> memory = ReceiveMemory(options_.path, Token('a'), 200, Soon());
    ASSERT_TRUE(memory.ok()) << memory.status();
    for (size_t i = 0; i < 200; ++i) {
      struct stat file {};
      ASSERT_EQ(::fstat(memory->descriptors[i].get(), &file), 0);
      EXPECT_EQ(file.st_size, static_cast<off_t>(i + 1));
    }
    EXPECT_THAT(claims_.WaitForEvents(1), ElementsAre(Claimed('a')));
  }
  EXPECT_THAT(claims_.WaitForEvents(2), ElementsAre(Claimed('a'), "closed a"));
}

TEST_F(MemoryServerTest, UnknownTokenIsRefusedAndNobodyIsToldOfItsEnd) {
  Start();
  EXPECT_EQ(ReceiveMemory(options_.path, Token('x'), 1, Soon()).status(),
            absl::PermissionDeniedError("no lease has this token"));
  RoundTrip();
  EXPECT_THAT(claims_.WaitForEvents(2), ElementsAre(Claimed('z'), "closed z"));
}

TEST_F(MemoryServerTest, SecondClaimIsRefusedAndDoesNotEndTheFirst) {
  Start();
  claims_.Offer(Token('a'), 1);
  absl::StatusOr<ReceivedMemory> memory = ReceiveMemory(options_.path, Token('a'), 1, Soon());
  ASSERT_TRUE(memory.ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ReceiveMemory(options_.path, Token('a'), 1, Soon()).status()));
  RoundTrip();
  EXPECT_THAT(claims_.WaitForEvents(3), ElementsAre(Claimed('a'), Claimed('z'), "closed z"));
  memory->connection.reset();
  EXPECT_EQ(claims_.WaitForEvents(4).back(), "closed a");
}

TEST_F(MemoryServerTest, WorkerThatExitsGivesItsMemoryBack) {
  Start();
  claims_.Offer(Token('a'), 3);
  WorkerProcess worker("hold", options_.path, Token('a'), 3);
  const std::string claimed = Claimed('a', worker.pid());
  ASSERT_EQ(worker.ReadLine(), "ok");
  worker.Finish();
  const std::vector<std::string> events = claims_.WaitForEvents(2);
  EXPECT_EQ(events.front(), claimed);
}

TEST_F(MemoryServerTest, KilledWorkerGivesItsMemoryBack) {
  Start();
  claims_.Offer(Token('a'), 3);
  WorkerProcess worker("hold", options_.path, Token('a'), 3);
  ASSERT_EQ(worker.ReadLine(), "ok");
  worker.Kill();
  // The hang-up may be seen before the death, or with it.
  std::vector<std::string> events = claims_.WaitForEvents(2);
  if (events.back() == "died a") events = claims_.WaitForEvents(3);
  EXPECT_EQ(events.back(), "closed a");
}

TEST_F(MemoryServerTest, ChildThatInheritedTheConnectionDoesNotKeepTheLease) {
  Start();
  claims_.Offer(Token('a'), 3);
  WorkerProcess worker("fork", options_.path, Token('a'), 3);
  std::string line = worker.ReadLine();
  ASSERT_THAT(line, StartsWith("ok "));
  const pid_t child = std::stoi(line.substr(3));
  const std::string claimed = Claimed('a', worker.pid());
  worker.Kill();
  EXPECT_THAT(claims_.WaitForEvents(3), ElementsAre(claimed, "died a", "closed a"));
  EXPECT_EQ(::kill(child, 0), 0) << "the child lives, and still has the connection";
}

TEST_F(MemoryServerTest, GarbageEndsTheConnection) {
  Start();
  const UniqueFd longer = Connect();
  const std::string garbage(4000, 'g');
  ASSERT_EQ(::send(longer.get(), garbage.data(), garbage.size(), 0), 4000);
  EXPECT_EQ(BytesUntilHangUp(longer), 0u);

  const UniqueFd shorter = Connect();
  ASSERT_EQ(::send(shorter.get(), garbage.data(), kMemoryTokenBytes - 1, 0), 31);
  ::shutdown(shorter.get(), SHUT_WR);
  EXPECT_EQ(BytesUntilHangUp(shorter), 0u);

  RoundTrip();
  EXPECT_THAT(claims_.WaitForEvents(2), ElementsAre(Claimed('z'), "closed z"));
}

TEST_F(MemoryServerTest, TokenMayComeInPieces) {
  Start();
  claims_.Offer(Token('a'), 0);
  const UniqueFd caller = Connect();
  for (size_t i = 0; i < kMemoryTokenBytes; ++i) ASSERT_EQ(::send(caller.get(), "a", 1, 0), 1);
  EXPECT_THAT(claims_.WaitForEvents(1), ElementsAre(Claimed('a')));
}

TEST_F(MemoryServerTest, WhatAHolderWritesIsOfNoConcern) {
  Start();
  claims_.Offer(Token('a'), 1);
  absl::StatusOr<ReceivedMemory> memory = ReceiveMemory(options_.path, Token('a'), 1, Soon());
  ASSERT_TRUE(memory.ok());
  ASSERT_EQ(::send(memory->connection.get(), "noise", 5, 0), 5);
  RoundTrip();
  EXPECT_THAT(claims_.WaitForEvents(3), ElementsAre(Claimed('a'), Claimed('z'), "closed z"));
  memory->connection.reset();
  EXPECT_EQ(claims_.WaitForEvents(4).back(), "closed a");
}

TEST_F(MemoryServerTest, SilentCallersHoldNobodyUp) {
  Start();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(Connect());
  ASSERT_EQ(::send(silent.front().get(), "a", 1, 0), 1);
  RoundTrip();
}

TEST_F(MemoryServerTest, SilentCallerIsHungUpOnInTime) {
  options_.answer_timeout = absl::Milliseconds(20);
  Start();
  EXPECT_EQ(BytesUntilHangUp(Connect()), 0u);
}

TEST_F(MemoryServerTest, HolderHasNoTimeLimit) {
  options_.answer_timeout = absl::Milliseconds(20);
  Start();
  claims_.Offer(Token('a'), 1);
  const absl::StatusOr<ReceivedMemory> memory = ReceiveMemory(options_.path, Token('a'), 1, Soon());
  ASSERT_TRUE(memory.ok());
  // A later caller's time runs out, so the holder's would have.
  EXPECT_EQ(BytesUntilHangUp(Connect()), 0u);
  EXPECT_THAT(claims_.WaitForEvents(1), ElementsAre(Claimed('a')));
}

TEST_F(MemoryServerTest, TooManyConnectionsAreRefused) {
  options_.max_connections = 1;
  Start();
  claims_.Offer(Token('a'), 1);
  const absl::StatusOr<ReceivedMemory> memory = ReceiveMemory(options_.path, Token('a'), 1, Soon());
  ASSERT_TRUE(memory.ok());
  claims_.Offer(Token('b'), 1);
  const absl::Status refused = ReceiveMemory(options_.path, Token('b'), 1, Soon()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
}

TEST_F(MemoryServerTest, OtherUserIsRefusedWithoutAGroup) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become another user";
  Start();
  std::filesystem::permissions(std::filesystem::path(options_.path).parent_path(), std::filesystem::perms(0755));
  claims_.Offer(Token('a'), 1);
  WorkerProcess kept_out("nobody", options_.path, Token('a'), 1);
  EXPECT_THAT(kept_out.ReadLine(), HasSubstr("mode forbids it"));

  std::filesystem::permissions(options_.path, std::filesystem::perms(0666));
  WorkerProcess refused("nobody", options_.path, Token('a'), 1);
  EXPECT_THAT(refused.ReadLine(), StartsWith("error 7 user 65534 may not have this daemon's memory"));
}

TEST_F(MemoryServerTest, OtherUserIsServedWithAGroup) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can become another user";
  options_.group = ::getegid();
  Start();
  std::filesystem::permissions(std::filesystem::path(options_.path).parent_path(), std::filesystem::perms(0755));
  claims_.Offer(Token('a'), 1);
  // Keeps its groups, so the mode 0660 lets it in.
  WorkerProcess worker("nobody", options_.path, Token('a'), 1);
  EXPECT_EQ(worker.ReadLine(), "ok");
}

TEST_F(MemoryServerTest, ShutdownTellsTheClaimsNothing) {
  Start();
  claims_.Offer(Token('a'), 1);
  const absl::StatusOr<ReceivedMemory> memory = ReceiveMemory(options_.path, Token('a'), 1, Soon());
  ASSERT_TRUE(memory.ok());
  server_.reset();
  EXPECT_EQ(BytesUntilHangUp(memory->connection), 0u);
  EXPECT_THAT(claims_.WaitForEvents(1), ElementsAre(Claimed('a')));
  EXPECT_FALSE(std::filesystem::exists(options_.path));
}

TEST_F(MemoryServerTest, PathInUseIsRefused) {
  Start();
  auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  EXPECT_TRUE(absl::IsAlreadyExists(MemoryServer::Create(options_, claims_, logger).status()));
  RoundTrip();
}

}  // namespace
}  // namespace holdfast
