#include "server/config/tcp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

absl::StatusOr<int> ParsePort(const std::string& text) {
  int port = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (digits && absl::SimpleAtoi(text, &port) && port <= 65535) return port;
  return absl::InvalidArgumentError(absl::StrCat("port '", text, "'; 0 to 65535 is valid"));
}

bool IsLoopback(const std::string& host, bool ipv6) {
  if (ipv6) {
    in6_addr address{};
    return ::inet_pton(AF_INET6, host.c_str(), &address) == 1 && IN6_IS_ADDR_LOOPBACK(&address);
  }
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

}  // namespace

std::string TcpAddress::ToString() const {
  return is_ipv6() ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<TcpAddress> ParseLoopbackAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError("host:port is valid, as 127.0.0.1:7700");
  }
  const absl::StatusOr<int> port = ParsePort(text.substr(colon + 1));
  if (!port.ok()) return port.status();
  std::string host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!brackets && host.find(':') != std::string::npos) {
    return absl::InvalidArgumentError("an IPv6 address needs brackets, as [::1]:7700");
  }
  if (brackets) host = host.substr(1, host.size() - 2);
  if (host == "localhost") host = "127.0.0.1";
  if (!IsLoopback(host, brackets)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", host,
                     "' is no loopback address, and what is served is not encrypted; valid are 127.0.0.0/8, "
                     "[::1] and localhost"));
  }
  return TcpAddress{.host = host, .port = *port};
}

}  // namespace holdfast
