#include "client/connection.h"

#include <sys/un.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace holdfast {
namespace {

constexpr int kMaxMessageBytes = 256 << 20;
// Longer than the five minutes that a gRPC server insists on between pings without data. A Unix socket tells of a
// dead peer at once; pings are for TCP.
constexpr int kKeepaliveMillis = 360'000;
constexpr int kKeepaliveTimeoutMillis = 20'000;
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un{}.sun_path) - 1;

absl::StatusOr<std::string> TargetOf(const std::string& address) {
  if (address.empty()) {
    return absl::InvalidArgumentError(
        "ClientOptions.address is empty: give the path of the daemon's worker socket, or HOST:PORT");
  }
  absl::string_view path = address;
  const bool has_scheme = absl::ConsumePrefix(&path, "unix:");
  if (has_scheme || absl::StrContains(address, '/')) {
    if (path.empty() || path.size() > kMaxSocketPath) {
      return absl::InvalidArgumentError(absl::StrCat("ClientOptions.address: the socket path '", path, "' has ",
                                                     path.size(), " bytes; 1 to ", kMaxSocketPath, " are possible"));
    }
    return absl::StrCat("unix:", path);
  }
  if (!absl::StrContains(address, ':')) {
    return absl::InvalidArgumentError(absl::StrCat("ClientOptions.address: '", address,
                                                   "' is neither the path of a socket (with a '/') nor HOST:PORT"));
  }
  return std::string(address);
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A connection of this client's own: its end must mean the end of this client's leases.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

absl::Status CheckPositive(absl::Duration value, const std::string& name) {
  if (value > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ClientOptions.", name, " is ", absl::FormatDuration(value), "; it must be above 0"));
}

}  // namespace

Connection::Connection(ClientOptions options, std::shared_ptr<grpc::Channel> channel)
    : options_(std::move(options)), channel_(std::move(channel)), stub_(v1::ParameterService::NewStub(channel_)) {}

absl::StatusOr<std::shared_ptr<Connection>> Connection::Open(ClientOptions options) {
  absl::StatusOr<std::string> target = TargetOf(options.address);
  if (!target.ok()) return target.status();
  for (const auto& [value, name] :
       {std::pair(options.connect_timeout, "connect_timeout"), std::pair(options.call_timeout, "call_timeout"),
        std::pair(options.reattach_timeout, "reattach_timeout")}) {
    if (absl::Status status = CheckPositive(value, name); !status.ok()) return status;
  }
  std::shared_ptr<Connection> connection(new Connection(std::move(options), MakeChannel(*target)));
  const ClientOptions& kept = connection->options();
  if (!connection->WaitUntilConnected(absl::Now() + kept.connect_timeout)) {
    return absl::UnavailableError(absl::StrCat("no holdfastd answers at '", kept.address, "' within ",
                                               absl::FormatDuration(kept.connect_timeout),
                                               ": is it running, and is this its worker_socket?"));
  }
  return connection;
}

bool Connection::WaitUntilConnected(absl::Time deadline) {
  return channel_->WaitForConnected(absl::ToChronoTime(deadline));
}

void Connection::SetDeadline(grpc::ClientContext& context) const {
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.call_timeout));
}

void Connection::Progress(const std::string& line) const {
  if (options_.on_progress) options_.on_progress(line);
}

}  // namespace holdfast
