#include "tests/integration/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/unique_fd.h"

namespace holdfast {

absl::StatusOr<std::string> HttpGet(const std::string& address, const std::string& target) {
  const size_t colon = address.rfind(':');
  int port = 0;
  sockaddr_in peer = {.sin_family = AF_INET};
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("'", address, "' is no address"));
  }
  peer.sin_port = htons(static_cast<uint16_t>(port));
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) != 0) {
    return absl::ErrnoToStatus(errno, address);
  }
  // HTTP/1.0: the answer ends with the connection, and is in one piece.
  const std::string request = absl::StrCat("GET ", target, " HTTP/1.0\r\nHost: ", address, "\r\n\r\n");
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return absl::ErrnoToStatus(errno, address);
  }
  std::string answer;
  char buffer[4096];
  for (ssize_t count; (count = ::recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<size_t>(count));
  }
  const size_t body = answer.find("\r\n\r\n");
  if (body == std::string::npos || answer.find(" 200 ") > answer.find('\r')) {
    return absl::UnavailableError(absl::StrCat("GET ", target, ": ", answer.substr(0, 200)));
  }
  return answer.substr(body + 4);
}

}  // namespace holdfast
