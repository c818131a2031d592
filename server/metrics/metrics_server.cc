#include "server/metrics/metrics_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/unique_fd.h"

namespace holdfast {
namespace {

// Why nobody can listen on `address`, as the HTTP library does not say it; empty if one can.
std::string ListenError(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  sockaddr_in target{};
  if (colon == std::string::npos || ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &target.sin_addr) != 1 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return "it is not of the form IPv4-address:port";
  }
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<uint16_t>(port));
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // As the server will do it: connections of a former life that linger are no obstacle.
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) != 0 || ::listen(fd.get(), 1) != 0) {
    return std::strerror(errno);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                                    const Metrics& metrics) {
  const auto failure = [&](const std::string& reason) {
    return absl::UnavailableError(absl::StrCat("metrics_address: can't serve on '", address, "': ", reason));
  };
  if (const std::string reason = ListenError(address); !reason.empty()) return failure(reason);
  // prometheus-cpp reports by exceptions.
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(address, /*num_threads=*/1);
    exposer->RegisterCollectable(metrics.registry());
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (ports.empty()) return failure("no listening port");
    std::string listening = absl::StrCat(address.substr(0, address.rfind(':') + 1), ports.front());
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(exposer), std::move(listening)));
  } catch (const std::exception& error) {
    return failure(error.what());
  }
}

}  // namespace holdfast
