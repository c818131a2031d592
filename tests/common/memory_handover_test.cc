#include "common/memory_handover.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kToken(kMemoryTokenBytes, 't');

absl::Time Soon() { return absl::Now() + absl::Seconds(30); }

UniqueFd MakeMemory(char content) {
  UniqueFd fd(::memfd_create("arena", MFD_CLOEXEC));
  EXPECT_EQ(::pwrite(fd.get(), &content, 1, 0), 1);
  return fd;
}

std::vector<UniqueFd> MakeMemories(size_t count) {
  std::vector<UniqueFd> memories;
  for (size_t i = 0; i < count; ++i) memories.push_back(MakeMemory(static_cast<char>(i)));
  return memories;
}

// A socket whose one caller is served by a function, on a thread.
class OneCallerDaemon {
 public:
  explicit OneCallerDaemon(std::function<void(int)> serve) {
    std::string directory = std::filesystem::temp_directory_path() / "handoverXXXXXX";
    path_ = std::string(::mkdtemp(directory.data())) + "/socket";
    listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, kMaxSocketPathBytes);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this, serve = std::move(serve)] {
      const UniqueFd caller(::accept(listener_.get(), nullptr, nullptr));
      serve(caller.get());
    });
  }
  ~OneCallerDaemon() {
    thread_.join();
    std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd listener_;
  std::thread thread_;
};

std::string ReadToken(int socket) {
  std::string token(kMemoryTokenBytes, '\0');
  EXPECT_EQ(::recv(socket, token.data(), token.size(), MSG_WAITALL), static_cast<ssize_t>(token.size()));
  return token;
}

void SendWhole(int socket, MemoryAnswer answer) {
  while (true) {
    absl::StatusOr<bool> sent = answer.Send(socket);
    if (!sent.ok() || *sent) return;
    pollfd writable = {.fd = socket, .events = POLLOUT, .revents = 0};
    ::poll(&writable, 1, -1);
  }
}

class GrantTest : public testing::TestWithParam<size_t> {};

TEST_P(GrantTest, AllDescriptorsComeInOrderAndCloseOnExec) {
  const size_t count = GetParam();
  std::string shown;
  OneCallerDaemon daemon([&](int socket) {
    shown = ReadToken(socket);
    SendWhole(socket, MemoryAnswer::Grant(MakeMemories(count)));
  });
  absl::StatusOr<ReceivedMemory> memory = ReceiveMemory(daemon.path(), kToken, count, Soon());
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(shown, kToken);
  EXPECT_TRUE(memory->connection);
  ASSERT_EQ(memory->descriptors.size(), count);
  for (size_t i = 0; i < count; ++i) {
    char content = 'x';
    ASSERT_EQ(::pread(memory->descriptors[i].get(), &content, 1, 0), 1);
    EXPECT_EQ(content, static_cast<char>(i));
    EXPECT_TRUE(::fcntl(memory->descriptors[i].get(), F_GETFD) & FD_CLOEXEC);
  }
}

// Around the limits of a message.
INSTANTIATE_TEST_SUITE_P(Counts, GrantTest, testing::Values(0, 1, 7, 63, 64, 65, 128, 200));

TEST(ReceiveMemoryTest, RefusalBringsCodeAndText) {
  OneCallerDaemon daemon([](int socket) {
    ReadToken(socket);
    SendWhole(socket, MemoryAnswer::Refuse(absl::PermissionDeniedError("no such token; attach again")));
  });
  const absl::Status status = ReceiveMemory(daemon.path(), kToken, 7, Soon()).status();
  EXPECT_EQ(status, absl::PermissionDeniedError("no such token; attach again"));
}

TEST(ReceiveMemoryTest, LongRefusalIsCut) {
  OneCallerDaemon daemon([](int socket) {
    ReadToken(socket);
    SendWhole(socket, MemoryAnswer::Refuse(absl::InternalError(std::string(5000, 'x'))));
  });
  EXPECT_EQ(ReceiveMemory(daemon.path(), kToken, 7, Soon()).status(), absl::InternalError(std::string(1024, 'x')));
}

TEST(ReceiveMemoryTest, RefusalBeforeTheTokenIsReadStillArrives) {
  OneCallerDaemon daemon([](int socket) {
    SendWhole(socket, MemoryAnswer::Refuse(absl::ResourceExhaustedError("too many connections")));
  });
  EXPECT_EQ(ReceiveMemory(daemon.path(), kToken, 7, Soon()).status(),
            absl::ResourceExhaustedError("too many connections"));
}

TEST(ReceiveMemoryTest, AnotherNumberOfDescriptorsIsInternal) {
  OneCallerDaemon daemon([](int socket) {
    ReadToken(socket);
    SendWhole(socket, MemoryAnswer::Grant(MakeMemories(6)));
  });
  const absl::Status status = ReceiveMemory(daemon.path(), kToken, 7, Soon()).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("6 descriptors instead of 7"));
}

TEST(ReceiveMemoryTest, OtherProtocolIsInternal) {
  OneCallerDaemon daemon([](int socket) {
    ReadToken(socket);
    const std::string_view text = "HTTP/1.1 400 Bad Request\r\n\r\n";
    EXPECT_EQ(::send(socket, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  });
  EXPECT_TRUE(absl::IsInternal(ReceiveMemory(daemon.path(), kToken, 7, Soon()).status()));
}

TEST(ReceiveMemoryTest, MissingDescriptorsAreNoticed) {
  OneCallerDaemon daemon([](int socket) {
    ReadToken(socket);
    // A grant of one descriptor, whose batch byte comes without it.
    const uint32_t header[] = {0x314d4648, 0, 1, 0};
    char bytes[sizeof(header) + 1] = {};
    std::memcpy(bytes, header, sizeof(header));
    EXPECT_EQ(::send(socket, bytes, sizeof(bytes), 0), static_cast<ssize_t>(sizeof(bytes)));
  });
  const absl::Status status = ReceiveMemory(daemon.path(), kToken, 1, Soon()).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("only 0 of 1 descriptors"));
}

TEST(ReceiveMemoryTest, TruncationByTheLimitOfOpenFilesIsNoticed) {
  // A process of its own, as its limit is changed.
  OneCallerDaemon daemon([](int socket) {
    ReadToken(socket);
    SendWhole(socket, MemoryAnswer::Grant(MakeMemories(7)));
  });
  const auto receive_with_few_descriptors = [&] {
    const int next = ::dup(0);
    ::close(next);
    // The socket and three descriptors.
    const rlimit limit = {.rlim_cur = static_cast<rlim_t>(next + 4), .rlim_max = static_cast<rlim_t>(next + 4)};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const absl::Status status = ReceiveMemory(daemon.path(), kToken, 7, Soon()).status();
    std::_Exit(absl::IsInternal(status) && absl::StrContains(status.message(), "of 7 descriptors") ? 0 : 1);
  };
  EXPECT_EXIT(receive_with_few_descriptors(), testing::ExitedWithCode(0), "");
}

TEST(ReceiveMemoryTest, HangUpIsUnavailable) {
  OneCallerDaemon daemon([](int socket) { ReadToken(socket); });
  EXPECT_TRUE(absl::IsUnavailable(ReceiveMemory(daemon.path(), kToken, 7, Soon()).status()));
}

TEST(ReceiveMemoryTest, SilentDaemonEndsAtTheDeadline) {
  OneCallerDaemon daemon([](int socket) {
    ReadToken(socket);
    // Until the caller has given up.
    char byte = 0;
    EXPECT_EQ(::recv(socket, &byte, 1, 0), 0);
  });
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(ReceiveMemory(daemon.path(), kToken, 7, absl::Now() + absl::Milliseconds(30)).status()));
}

TEST(ReceiveMemoryTest, NobodyListeningIsUnavailable) {
  const absl::Status status = ReceiveMemory("/nonexistent/holdfast.memory", kToken, 7, Soon()).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("/nonexistent/holdfast.memory"), HasSubstr("holdfastd")));
}

TEST(ReceiveMemoryTest, WrongLengthsAreInvalid) {
  const absl::Status path = ReceiveMemory(std::string(108, 'p'), kToken, 7, Soon()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(path));
  EXPECT_THAT(std::string(path.message()), HasSubstr("108 bytes; 1 to 107"));
  EXPECT_TRUE(absl::IsInvalidArgument(ReceiveMemory("", kToken, 7, Soon()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReceiveMemory("/tmp/socket", "short", 7, Soon()).status()));
}

}  // namespace
}  // namespace holdfast
