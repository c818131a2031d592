// The way to the daemon.
#ifndef HOLDFAST_CLIENT_HOLDFASTCTL_DAEMON_CHANNEL_H_
#define HOLDFAST_CLIENT_HOLDFASTCTL_DAEMON_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/holdfastctl/arguments.h"

namespace holdfast::ctl {

inline constexpr std::string_view kAddressHelp =
    "unix:/PATH, /PATH or HOST:PORT of the daemon; $HOLDFAST_SOCKET if not given, or /run/holdfast/worker.sock";

// A connected channel, and how to use it.
class DaemonChannel {
 public:
  // As --address and --timeout say. INVALID_ARGUMENT: one of them is wrong. UNAVAILABLE: nobody answers there; that
  // is found out at once, if there is nobody to wait for. PERMISSION_DENIED: the socket's mode forbids it.
  static absl::StatusOr<DaemonChannel> Open(const Arguments& arguments);

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  const std::string& address() const { return address_; }
  absl::Duration timeout() const { return timeout_; }

  // Calls `method` of a stub with a deadline.
  template <typename Stub, typename Request, typename Response>
  absl::Status Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response& response) const {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    const grpc::Status status = (stub.*method)(&context, request, &response);
    // The numbers of the codes are the same by design.
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

 private:
  DaemonChannel(std::string address, absl::Duration timeout, std::shared_ptr<grpc::Channel> channel)
      : address_(std::move(address)), timeout_(timeout), channel_(std::move(channel)) {}

  std::string address_;
  absl::Duration timeout_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace holdfast::ctl

#endif  // HOLDFAST_CLIENT_HOLDFASTCTL_DAEMON_CHANNEL_H_
