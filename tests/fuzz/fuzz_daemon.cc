#include "tests/fuzz/fuzz_daemon.h"

#include <google/protobuf/text_format.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/config/config.h"
#include "server/logging/logger.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<FuzzDaemon>> FuzzDaemon::Start() {
  auto fuzz = std::unique_ptr<FuzzDaemon>(new FuzzDaemon());
  fuzz->directory_ = std::make_unique<TemporaryDirectory>();
  v1::DaemonConfig message;
  message.set_worker_socket(fuzz->worker_socket());
  message.set_num_ranks(kWorld);
  message.set_backend(v1::BACKEND_CPU);
  message.set_compute_threads(2);
  // Random shapes must not take the machine's memory.
  message.set_memory_limit_bytes(64 << 20);
  message.set_pull_staging_bytes(4 << 20);
  // Nothing may expire by itself: a call that waits is answered because something happened.
  message.mutable_collective_timeout()->set_seconds(3600);
  message.set_log_level(v1::LOG_LEVEL_ERROR);
  const absl::StatusOr<Config> config = ResolveConfig(message);
  if (!config.ok()) return config.status();
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start(*config, CreateLogger(config->log_format, config->log_level));
  if (!daemon.ok()) return daemon.status();
  fuzz->daemon_ = *std::move(daemon);
  fuzz->channel_ = grpc::CreateChannel("unix:" + fuzz->worker_socket(), grpc::InsecureChannelCredentials());
  fuzz->parameters_ = v1::ParameterService::NewStub(fuzz->channel_);
  fuzz->admin_ = v1::AdminService::NewStub(fuzz->channel_);
  return fuzz;
}

std::string FuzzDaemon::State() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  v1::GetStatusResponse response;
  const grpc::Status status = admin_->GetStatus(&context, {}, &response);
  if (!status.ok()) return absl::StrCat("no answer: ", status.error_message());
  std::string text;
  google::protobuf::TextFormat::PrintToString(response, &text);
  return text;
}

}  // namespace holdfast
