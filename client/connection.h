// The gRPC channel to one daemon.
#ifndef HOLDFAST_CLIENT_CONNECTION_H_
#define HOLDFAST_CLIENT_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/options.h"
#include "holdfast/v1/parameter_service.grpc.pb.h"

namespace holdfast {

// Shared by a Client and its sessions. Thread-safe. It reconnects by itself; a call on a lost connection fails with
// UNAVAILABLE at once.
class Connection {
 public:
  // INVALID_ARGUMENT names what is wrong with the options; UNAVAILABLE: nobody answered within connect_timeout.
  static absl::StatusOr<std::shared_ptr<Connection>> Open(ClientOptions options);

  const ClientOptions& options() const { return options_; }
  v1::ParameterService::Stub& stub() { return *stub_; }
  // False if nobody answers by `deadline`.
  bool WaitUntilConnected(absl::Time deadline);
  // Gives a call its deadline, call_timeout from now.
  void SetDeadline(grpc::ClientContext& context) const;
  void Progress(const std::string& line) const;

 private:
  Connection(ClientOptions options, std::shared_ptr<grpc::Channel> channel);

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ParameterService::Stub> stub_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_CONNECTION_H_
