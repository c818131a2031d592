// A TCP address on which the daemon listens.
#ifndef HOLDFAST_SERVER_CONFIG_TCP_ADDRESS_H_
#define HOLDFAST_SERVER_CONFIG_TCP_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"

namespace holdfast {

// "127.0.0.1:7700" or "[::1]:7700" taken apart.
struct TcpAddress {
  // An IP address, without brackets.
  std::string host;
  // 0: a free one.
  int port = 0;

  // With brackets where they are needed.
  std::string ToString() const;
  bool is_ipv6() const { return host.find(':') != std::string::npos; }
};

// "localhost" becomes 127.0.0.1. INVALID_ARGUMENT says what is wrong with `text`: its form, its port, or that it is no
// loopback address.
absl::StatusOr<TcpAddress> ParseLoopbackAddress(const std::string& text);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_TCP_ADDRESS_H_
