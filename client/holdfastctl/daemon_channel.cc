#include "client/holdfastctl/daemon_channel.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/memory_handover.h"

namespace holdfast::ctl {
namespace {

constexpr char kDefaultSocket[] = "/run/holdfast/worker.sock";
constexpr absl::Duration kDefaultTimeout = absl::Seconds(10);
// A spec of very many parameters.
constexpr int kMaxMessageBytes = 64 << 20;

std::string AddressOf(const Arguments& arguments) {
  if (arguments.Has("address")) return arguments.Get("address");
  const char* from_environment = std::getenv("HOLDFAST_SOCKET");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment : kDefaultSocket;
}

absl::StatusOr<std::string> TargetOf(const std::string& address) {
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, "unix:") || address.find('/') != std::string::npos) {
    const std::string path(rest);
    if (path.empty() || path.size() > kMaxSocketPathBytes) {
      return absl::InvalidArgumentError(absl::StrCat("--address: the socket path '", path, "' has ", path.size(),
                                                     " bytes; 1 to ", kMaxSocketPathBytes, " are possible"));
    }
    std::error_code error;
    if (!std::filesystem::is_socket(path, error)) {
      return absl::UnavailableError(absl::StrCat(
          "there is no socket '", path,
          "': is holdfastd running? Say where it listens by --address or by the environment variable HOLDFAST_SOCKET"));
    }
    if (::access(path.c_str(), W_OK) != 0) {
      return absl::PermissionDeniedError(absl::StrCat(
          "the socket '", path, "' is not for this user: run as the daemon's user, or in its socket_group"));
    }
    return absl::StrCat("unix:", path);
  }
  if (address.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--address: '", address, "'; unix:/PATH, /PATH and HOST:PORT are valid"));
  }
  return address;
}

// False if the first attempt to connect fails, or none is over by `deadline`.
bool Connect(grpc::Channel& channel, absl::Time deadline) {
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN) return false;
    if (!channel.WaitForStateChange(state, absl::ToChronoTime(deadline))) return false;
    state = channel.GetState(/*try_to_connect=*/true);
  }
  return true;
}

}  // namespace

absl::StatusOr<DaemonChannel> DaemonChannel::Open(const Arguments& arguments) {
  const std::string address = AddressOf(arguments);
  const absl::StatusOr<absl::Duration> timeout = arguments.GetDuration("timeout", kDefaultTimeout);
  if (!timeout.ok()) return timeout.status();
  const absl::StatusOr<std::string> target = TargetOf(address);
  if (!target.ok()) return target.status();
  grpc::ChannelArguments options;
  options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  options.SetMaxReceiveMessageSize(kMaxMessageBytes);
  std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(*target, grpc::InsecureChannelCredentials(), options);
  if (!Connect(*channel, absl::Now() + *timeout)) {
    return absl::UnavailableError(absl::StrCat("no holdfastd answers at '", address, "': is it running?"));
  }
  return DaemonChannel(address, *timeout, std::move(channel));
}

}  // namespace holdfast::ctl
