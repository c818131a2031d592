// What the memory socket asks of the core.
#ifndef HOLDFAST_SERVER_CORE_MEMORY_CLAIMS_H_
#define HOLDFAST_SERVER_CORE_MEMORY_CLAIMS_H_

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/unique_fd.h"

namespace holdfast {

// Thread-safe.
class MemoryClaims {
 public:
  virtual ~MemoryClaims() = default;

  // Descriptors of the arenas that `token` (AttachResponse.memory_token) stands for, in the order of Attached.arenas.
  // `pid` is the kernel's word for the caller, 0 if it lives in another pid namespace. A token can be used once.
  virtual absl::StatusOr<std::vector<UniqueFd>> ClaimMemory(std::string_view token, pid_t pid) = 0;
  // The worker has unmapped everything.
  virtual void ConnectionClosed(std::string_view token) = 0;
  // The process that claimed the memory is dead.
  virtual void ProcessDied(std::string_view token, pid_t pid) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_MEMORY_CLAIMS_H_
