// The configuration, read, checked and with its defaults filled in.
#ifndef HOLDFAST_SERVER_CONFIG_CONFIG_H_
#define HOLDFAST_SERVER_CONFIG_CONFIG_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/v1/config.pb.h"

namespace holdfast {

// "host:port" taken apart; an IPv6 host without its brackets.
struct TcpAddress {
  std::string host;
  int port = 0;

  // With brackets where they are needed.
  std::string ToString() const;
};

// v1::DaemonConfig, whose comments say what each field means.
struct Config {
  std::string worker_socket;
  std::string memory_socket;
  std::optional<gid_t> socket_group;
  std::optional<TcpAddress> operator_address;
  std::optional<TcpAddress> metrics_address;
  // BACKEND_CPU: what AUTO stands for in this version.
  v1::Backend backend = v1::BACKEND_CPU;
  int num_ranks = 0;
  // 0: what the machine has free.
  int64_t memory_limit_bytes = 0;
  int compute_threads = 1;
  absl::Duration collective_timeout;
  absl::Duration drain_grace_period;
  int64_t pull_staging_bytes = 0;
  v1::LogFormat log_format = v1::LOG_FORMAT_TEXT;
  v1::LogLevel log_level = v1::LOG_LEVEL_INFO;
  std::string ready_file;
};

// INVALID_ARGUMENT names the field, its value and what is valid. Looks at the machine for the group and the sockets'
// directories.
absl::StatusOr<Config> ResolveConfig(const v1::DaemonConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_CONFIG_H_
