#include "server/handover/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/memory_handover.h"

namespace holdfast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() {
    std::string directory = std::filesystem::temp_directory_path() / "unixsocketXXXXXX";
    directory_ = ::mkdtemp(directory.data());
    path_ = directory_ / "socket";
  }
  ~UnixSocketTest() override { std::filesystem::remove_all(directory_); }

  // As a killed daemon leaves it: bound once, and nobody there.
  void LeaveStaleSocket() {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, kMaxSocketPathBytes);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  struct stat Stat() {
    struct stat file {};
    EXPECT_EQ(::lstat(path_.c_str(), &file), 0);
    return file;
  }

  std::filesystem::path directory_;
  std::string path_;
};

TEST_F(UnixSocketTest, Listen_GivesTheFileToItsOwnerOnly) {
  const absl::StatusOr<UnixListener> listener = UnixListener::Listen(path_, std::nullopt);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(Stat().st_mode & 07777, 0600u);
}

TEST_F(UnixSocketTest, Listen_WithAGroupLetsItIn) {
  const absl::StatusOr<UnixListener> listener = UnixListener::Listen(path_, ::getegid());
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(Stat().st_mode & 07777, 0660u);
  EXPECT_EQ(Stat().st_gid, ::getegid());
}

TEST_F(UnixSocketTest, Listen_WhereSomeoneListensIsRefused) {
  const absl::StatusOr<UnixListener> first = UnixListener::Listen(path_, std::nullopt);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = UnixListener::Listen(path_, std::nullopt).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second));
  EXPECT_THAT(std::string(second.message()), AllOf(HasSubstr("address in use"), HasSubstr(path_)));
  // The refused one has left the file alone.
  EXPECT_TRUE(std::filesystem::is_socket(path_));
}

TEST_F(UnixSocketTest, Listen_ReplacesWhatAKilledDaemonLeft) {
  LeaveStaleSocket();
  const absl::StatusOr<UnixListener> listener = UnixListener::Listen(path_, std::nullopt);
  EXPECT_TRUE(listener.ok()) << listener.status();
}

TEST_F(UnixSocketTest, Prepare_RemovesAStaleSocket) {
  LeaveStaleSocket();
  EXPECT_TRUE(PrepareSocketPath(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(PrepareSocketPath(path_).ok()) << "nothing there is fine";
}

TEST_F(UnixSocketTest, Prepare_LeavesOtherFilesAlone) {
  std::ofstream(path_) << "precious";
  const absl::Status status = PrepareSocketPath(path_);
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("is no socket"));
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

TEST_F(UnixSocketTest, Prepare_LeavesALinkToASocketAlone) {
  const absl::StatusOr<UnixListener> listener = UnixListener::Listen(directory_ / "other", std::nullopt);
  ASSERT_TRUE(listener.ok());
  std::filesystem::create_symlink(directory_ / "other", path_);
  EXPECT_TRUE(absl::IsAlreadyExists(PrepareSocketPath(path_)));
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
}

TEST_F(UnixSocketTest, TooLongPathsNameTheirLength) {
  const std::string path(108, 'p');
  for (const absl::Status& status : {UnixListener::Listen(path, std::nullopt).status(), PrepareSocketPath(path)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("108 bytes; 1 to 107"));
  }
}

TEST_F(UnixSocketTest, MissingDirectoryIsNamed) {
  const absl::Status status = UnixListener::Listen("/nonexistent/socket", std::nullopt).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/socket"));
}

TEST_F(UnixSocketTest, FileGoesWithTheListener) {
  { ASSERT_TRUE(UnixListener::Listen(path_, std::nullopt).ok()); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, AnothersFileStays) {
  {
    const absl::StatusOr<UnixListener> listener = UnixListener::Listen(path_, std::nullopt);
    ASSERT_TRUE(listener.ok());
    // Kept, so that its inode cannot be used again.
    std::filesystem::rename(path_, directory_ / "kept");
    LeaveStaleSocket();
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, SetAccess_NamesWhatIsMissing) {
  const absl::Status status = SetSocketAccess(path_, std::nullopt);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

}  // namespace
}  // namespace holdfast
