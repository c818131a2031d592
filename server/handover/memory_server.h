// The memory socket: hands the arenas' descriptors to workers, and notices when a worker is gone.
#ifndef HOLDFAST_SERVER_HANDOVER_MEMORY_SERVER_H_
#define HOLDFAST_SERVER_HANDOVER_MEMORY_SERVER_H_

#include <poll.h>
#include <spdlog/logger.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/unique_fd.h"
#include "server/core/memory_claims.h"
#include "server/handover/memory_connection.h"
#include "server/handover/unix_socket.h"

namespace holdfast {

// One thread serves everybody, and waits for nobody. Callers must be root or the daemon's own user; with a socket
// group, the socket's mode says who may call.
class MemoryServer {
 public:
  struct Options {
    // See common/memory_handover.h.
    std::string path;
    // See DaemonConfig.socket_group.
    std::optional<gid_t> group;
    // How long a caller may take to show its token and to read the answer.
    absl::Duration answer_timeout = absl::Seconds(10);
    // More are refused with RESOURCE_EXHAUSTED.
    size_t max_connections = 1024;
  };

  // Listens when it returns. `claims` must outlive the server; its methods are called from the server's thread.
  static absl::StatusOr<std::unique_ptr<MemoryServer>> Create(Options options, MemoryClaims& claims,
                                                              std::shared_ptr<spdlog::logger> logger);
  // Closes every connection without a word to the claims, as workers may still map the memory.
  ~MemoryServer();

  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;

 private:
  MemoryServer(Options options, MemoryClaims& claims, std::shared_ptr<spdlog::logger> logger, UnixListener listener,
               UniqueFd stop);

  void Run();
  std::vector<pollfd> PollSet() const;
  // Milliseconds until the next deadline, −1 for none.
  int PollTimeout() const;
  void HandleConnections(const std::vector<pollfd>& ready);
  void Accept();
  void Admit(UniqueFd socket);

  const Options options_;
  MemoryClaims& claims_;
  const std::shared_ptr<spdlog::logger> logger_;
  UnixListener listener_;
  // An eventfd, readable when the thread is to end.
  const UniqueFd stop_;
  // The thread's own, as the next.
  std::vector<std::unique_ptr<MemoryConnection>> connections_;
  // Until then nobody is accepted: this process was out of descriptors.
  absl::Time accept_after_ = absl::InfinitePast();
  // Last, as it uses all of the above.
  std::thread thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HANDOVER_MEMORY_SERVER_H_
