// The configuration, checked and with its defaults filled in.
#ifndef HOLDFAST_SERVER_CONFIG_CONFIG_H_
#define HOLDFAST_SERVER_CONFIG_CONFIG_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/v1/config.pb.h"
#include "server/config/field_origins.h"
#include "server/config/tcp_address.h"

namespace holdfast {

// v1::DaemonConfig, whose comments say what each field means.
struct Config {
  // Absolute, as the next: workers are told of them, whatever directory they run in.
  std::string worker_socket;
  std::string memory_socket;
  // Empty, as the next: the owner only.
  std::string socket_group_name;
  std::optional<gid_t> socket_group;
  std::optional<TcpAddress> operator_address;
  std::optional<TcpAddress> metrics_address;
  // BACKEND_CPU: what AUTO stands for in this version.
  v1::Backend backend = v1::BACKEND_CPU;
  int num_ranks = 0;
  // 0: 90 % of what the machine has free at registration.
  int64_t memory_limit_bytes = 0;
  int compute_threads = 1;
  absl::Duration collective_timeout;
  absl::Duration drain_grace_period;
  int64_t pull_staging_bytes = 0;
  v1::LogFormat log_format = v1::LOG_FORMAT_TEXT;
  v1::LogLevel log_level = v1::LOG_LEVEL_INFO;
  std::string ready_file;

  // As text format that --config reads.
  std::string ToText() const;
};

// INVALID_ARGUMENT has a line for each field that is wrong: where it was set, its name, its value, and what is valid.
// Looks at the machine for the group and for the directories.
absl::StatusOr<Config> ResolveConfig(const v1::DaemonConfig& config, const FieldOrigins& origins = {});

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_CONFIG_H_
