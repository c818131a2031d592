// The process at the other end of a Unix socket.
#ifndef HOLDFAST_SERVER_HANDOVER_PEER_H_
#define HOLDFAST_SERVER_HANDOVER_PEER_H_

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/unique_fd.h"

namespace holdfast {

// As it was when it connected.
struct Peer {
  // 0 if it lives in another pid namespace.
  pid_t pid = 0;
  uid_t uid = 0;
  // Readable once the process is dead. Empty if the kernel gives none for a process of another pid namespace: then only
  // the connection tells.
  UniqueFd process;
};

// Whose end `socket` has. NOT_FOUND: that process is dead already.
absl::StatusOr<Peer> IdentifyPeer(int socket);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HANDOVER_PEER_H_
