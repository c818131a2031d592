// A whole daemon in this process, so that sanitizers and coverage see it.
#ifndef HOLDFAST_TESTS_FUZZ_FUZZ_DAEMON_H_
#define HOLDFAST_TESTS_FUZZ_FUZZ_DAEMON_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "holdfast/v1/admin_service.grpc.pb.h"
#include "holdfast/v1/parameter_service.grpc.pb.h"
#include "server/daemon.h"
#include "tests/integration/temporary_directory.h"

namespace holdfast {

// Serves on sockets in a directory of its own. Used by one thread; the stubs by any.
class FuzzDaemon {
 public:
  static constexpr int32_t kWorld = 3;

  static absl::StatusOr<std::unique_ptr<FuzzDaemon>> Start();

  std::string worker_socket() const { return directory_->File("w"); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  v1::ParameterService::Stub& parameters() { return *parameters_; }
  v1::AdminService::Stub& admin() { return *admin_; }
  // Everything that operators can see, as text; begins with "no answer" if the daemon does not answer.
  std::string State();

 private:
  FuzzDaemon() = default;

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ParameterService::Stub> parameters_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_FUZZ_FUZZ_DAEMON_H_
