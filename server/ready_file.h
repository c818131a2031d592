// The file that tells that the daemon serves, and where.
#ifndef HOLDFAST_SERVER_READY_FILE_H_
#define HOLDFAST_SERVER_READY_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace holdfast {

struct ReadyAddresses {
  std::string worker_socket;
  std::string memory_socket;
  // Empty if there is none, as the next.
  std::string operator_address;
  std::string metrics_address;
};

// Writes a JSON object with the addresses and the process's id under a temporary name, then renames it.
absl::Status WriteReadyFile(const std::string& path, const ReadyAddresses& addresses);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_READY_FILE_H_
