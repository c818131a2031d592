#include "server/handover/peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

// Linux 6.5; Debian 12's headers do not have it.
constexpr int kSoPeerPidFd = 77;

absl::Status Dead(pid_t pid) { return absl::NotFoundError(absl::StrCat("process ", pid, " is dead")); }

// The descriptor of the very process that connected, where the kernel can tell; otherwise of the process that has its
// number now, which is another one only if that died, and its number came round, since.
absl::StatusOr<UniqueFd> OpenProcess(int socket, pid_t pid) {
  int fd = -1;
  socklen_t length = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, kSoPeerPidFd, &fd, &length) == 0) return UniqueFd(fd);
  if (errno == ESRCH || (errno == EINVAL && pid != 0)) return Dead(pid);
  if (pid == 0) return UniqueFd();
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process) return process;
  if (errno == ESRCH) return Dead(pid);
  return absl::UnavailableError(absl::StrCat("cannot watch process ", pid, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<Peer> IdentifyPeer(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot tell who has connected: ", std::strerror(errno)));
  }
  absl::StatusOr<UniqueFd> process = OpenProcess(socket, credentials.pid);
  if (!process.ok()) return process.status();
  if (*process) {
    pollfd ended = {.fd = process->get(), .events = POLLIN, .revents = 0};
    if (::poll(&ended, 1, 0) > 0) return Dead(credentials.pid);
  }
  return Peer{.pid = credentials.pid, .uid = credentials.uid, .process = *std::move(process)};
}

}  // namespace holdfast
