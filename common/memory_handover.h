// The memory socket's protocol: a worker shows a token and is handed the descriptors of its rank's arenas.
//
//   worker → daemon   the token, 32 bytes, and nothing after it
//   daemon → worker   magic, code, num_descriptors, text_bytes (uint32 each, native order), then the text; if the code
//   is
//                     OK then one byte for every 64 descriptors or part of them, which come with it by SCM_RIGHTS
//
// The worker keeps the connection for as long as it maps any of the memory, and its end says that it does not.
#ifndef HOLDFAST_COMMON_MEMORY_HANDOVER_H_
#define HOLDFAST_COMMON_MEMORY_HANDOVER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/unique_fd.h"

namespace holdfast {

inline constexpr size_t kMemoryTokenBytes = 32;
// sun_path, less its final zero.
inline constexpr size_t kMaxSocketPathBytes = 107;

// What a worker gets. All descriptors are close-on-exec.
struct ReceivedMemory {
  // To be closed once nothing is mapped any more.
  UniqueFd connection;
  // In the order of Attached.arenas.
  std::vector<UniqueFd> descriptors;
};

// The worker's side: connects to the socket at `path`, shows `token`, and waits for `expected_count` descriptors.
// A refusal comes with the daemon's code and text. INVALID_ARGUMENT: a path or token of the wrong length ·
// UNAVAILABLE: nobody listens there, or the daemon hung up · PERMISSION_DENIED: the socket's mode forbids it ·
// DEADLINE_EXCEEDED · INTERNAL: the daemon's answer makes no sense, or the descriptors did not all arrive.
// Thread-safe.
absl::StatusOr<ReceivedMemory> ReceiveMemory(std::string_view path, std::string_view token, size_t expected_count,
                                             absl::Time deadline);

// The daemon's side: one answer, sent piece by piece as the socket takes it. Not thread-safe.
class MemoryAnswer {
 public:
  static MemoryAnswer Grant(std::vector<UniqueFd> descriptors);
  // `reason` is not OK. Its text is cut to 1024 bytes.
  static MemoryAnswer Refuse(const absl::Status& reason);

  // Never waits. True when all of it is out, false when the socket takes no more now.
  absl::StatusOr<bool> Send(int socket);

 private:
  MemoryAnswer() = default;

  // Header and text.
  std::string bytes_;
  size_t sent_bytes_ = 0;
  std::vector<UniqueFd> descriptors_;
  size_t sent_descriptors_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_MEMORY_HANDOVER_H_
