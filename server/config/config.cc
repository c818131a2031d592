#include "server/config/config.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

void SetDuration(absl::Duration value, google::protobuf::Duration& message) {
  message.set_seconds(absl::IDivDuration(value, absl::Seconds(1), &value));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(value)));
}

}  // namespace

std::string Config::ToText() const {
  v1::DaemonConfig message;
  message.set_worker_socket(worker_socket);
  message.set_memory_socket(memory_socket);
  message.set_socket_group(socket_group_name);
  if (operator_address.has_value()) message.set_operator_address(operator_address->ToString());
  if (metrics_address.has_value()) message.set_metrics_address(metrics_address->ToString());
  message.set_backend(backend);
  message.set_num_ranks(static_cast<uint32_t>(num_ranks));
  message.set_memory_limit_bytes(static_cast<uint64_t>(memory_limit_bytes));
  message.set_compute_threads(static_cast<uint32_t>(compute_threads));
  SetDuration(collective_timeout, *message.mutable_collective_timeout());
  SetDuration(drain_grace_period, *message.mutable_drain_grace_period());
  message.set_pull_staging_bytes(static_cast<uint64_t>(pull_staging_bytes));
  message.set_log_format(log_format);
  message.set_log_level(log_level);
  message.set_ready_file(ready_file);
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

}  // namespace holdfast
