// Socket files: who may connect, and what becomes of those that a daemon left behind.
#ifndef HOLDFAST_SERVER_HANDOVER_UNIX_SOCKET_H_
#define HOLDFAST_SERVER_HANDOVER_UNIX_SOCKET_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/unique_fd.h"

namespace holdfast {

// Makes `path` free to bind: removes a socket file on which nobody listens. ALREADY_EXISTS: someone does, or the file
// is no socket; it is left alone then.
absl::Status PrepareSocketPath(const std::string& path);

// Gives the socket file at `path` mode 0600, or with a group that group and 0660. Whoever binds a path with other means
// than ListenOnUnixSocket sets the umask to 0077 before that, so that the file is never open to others.
absl::Status SetSocketAccess(const std::string& path, std::optional<gid_t> group);

// A listening stream socket. The file is unlinked with the object, unless another one has taken its place.
class UnixListener {
 public:
  // Prepares the path, binds it and sets its access; non-blocking, close-on-exec. INVALID_ARGUMENT: the path is too
  // long.
  static absl::StatusOr<UnixListener> Listen(const std::string& path, std::optional<gid_t> group);

  UnixListener(UnixListener&&) = default;
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();

  int fd() const { return fd_.get(); }

 private:
  UnixListener(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  // Of the file that this object has bound.
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HANDOVER_UNIX_SOCKET_H_
