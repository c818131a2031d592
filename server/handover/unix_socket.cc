#include "server/handover/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory_handover.h"

namespace holdfast {
namespace {

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  if (path.empty() || path.size() > kMaxSocketPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("socket path '", path, "' has ", path.size(), " bytes; 1 to ",
                                                   kMaxSocketPathBytes, " are possible"));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kMaxSocketPathBytes);
  return address;
}

absl::Status PathError(const std::string& path, const char* what) {
  const int error = errno;
  const std::string text = absl::StrCat("socket '", path, "': cannot ", what, ": ", std::strerror(error));
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(text);
  if (error == EADDRINUSE) return absl::AlreadyExistsError(text);
  return absl::UnavailableError(text);
}

}  // namespace

absl::Status PrepareSocketPath(const std::string& path) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) {
    return errno == ENOENT ? absl::OkStatus() : PathError(path, "look at it");
  }
  if (!S_ISSOCK(file.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat("'", path, "' is there and is no socket; remove it, or choose another path"));
  }
  // Non-blocking: a listener whose backlog is full is a listener.
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return PathError(path, "make a socket");
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0 ||
      errno != ECONNREFUSED) {
    return absl::AlreadyExistsError(absl::StrCat("socket '", path,
                                                 "': address in use: another process listens there; stop it, or choose "
                                                 "another path"));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return PathError(path, "remove what a former process left");
  return absl::OkStatus();
}

absl::Status SetSocketAccess(const std::string& path, std::optional<gid_t> group) {
  if (group.has_value() && ::chown(path.c_str(), static_cast<uid_t>(-1), *group) != 0) {
    return PathError(path, "give it to the socket group");
  }
  if (::chmod(path.c_str(), group.has_value() ? 0660 : 0600) != 0) return PathError(path, "set its mode");
  return absl::OkStatus();
}

absl::StatusOr<UnixListener> UnixListener::Listen(const std::string& path, std::optional<gid_t> group) {
  if (absl::Status status = PrepareSocketPath(path); !status.ok()) return status;
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return PathError(path, "make a socket");
  // Linux gives the file the mode that the socket has, less the umask: it is closed to others from its first moment.
  if (::fchmod(fd.get(), 0600) != 0) return PathError(path, "set its mode");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return PathError(path, "bind it");
  }
  UnixListener listener(path, std::move(fd));
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return PathError(path, "look at it");
  listener.device_ = file.st_dev;
  listener.inode_ = file.st_ino;
  if (absl::Status status = SetSocketAccess(path, group); !status.ok()) return status;
  if (::listen(listener.fd(), SOMAXCONN) != 0) return PathError(path, "listen on it");
  return listener;
}

UnixListener::~UnixListener() {
  struct stat file {};
  if (fd_ && ::lstat(path_.c_str(), &file) == 0 && file.st_dev == device_ && file.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

}  // namespace holdfast
