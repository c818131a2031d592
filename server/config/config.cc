#include "server/config/config.h"

#include <arpa/inet.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace holdfast {
namespace {

constexpr size_t kMaxSocketPathBytes = sizeof(sockaddr_un::sun_path) - 1;
constexpr int kMaxRanks = 64;
constexpr int kMaxThreads = 256;

absl::Status Invalid(const std::string& field, const std::string& is, const std::string& valid) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", is, "; ", valid));
}

absl::Status CheckSocketPath(const std::string& field, const std::string& path) {
  if (path.size() > kMaxSocketPathBytes) {
    return Invalid(field, absl::StrCat("'", path, "' has ", path.size(), " bytes"),
                   absl::StrCat("a Unix socket's path has ", kMaxSocketPathBytes, " at most; use a shorter directory"));
  }
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  struct stat info = {};
  if (::stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Invalid(field, absl::StrCat("'", directory, "' is no directory"), "make it first, or use another path");
  }
  return absl::OkStatus();
}

bool IsLoopback(const std::string& host) {
  in_addr v4 = {};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6 = {};
  return ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::StatusOr<std::optional<TcpAddress>> ParseAddress(const std::string& field, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const size_t colon = text.rfind(':');
  TcpAddress address;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &address.port) || address.port < 0 ||
      address.port > 65535) {
    return Invalid(field, absl::StrCat("'", text, "'"),
                   "host:port is valid, as 127.0.0.1:7700, with a port from 0 to 65535");
  }
  address.host = text.substr(0, colon);
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (!IsLoopback(address.host)) {
    return Invalid(field, absl::StrCat("'", text, "' is not a loopback address"),
                   "this version serves plaintext, hence only on 127.0.0.0/8, [::1] and localhost");
  }
  return address;
}

absl::StatusOr<absl::Duration> ParseDuration(const std::string& field, const google::protobuf::Duration& message,
                                             absl::Duration least) {
  const absl::Duration duration = absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
  if (duration >= least && duration <= absl::Hours(24)) return duration;
  return Invalid(field, absl::FormatDuration(duration), absl::StrCat(absl::FormatDuration(least), " to 24h is valid"));
}

absl::StatusOr<gid_t> FindGroup(const std::string& name) {
  std::array<char, 16384> storage;
  group entry = {};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, storage.data(), storage.size(), &found) == 0 && found != nullptr) {
    return found->gr_gid;
  }
  return Invalid("socket_group", absl::StrCat("'", name, "'"), "no such group is on this machine");
}

absl::Status ResolveNumbers(const v1::DaemonConfig& in, Config& out) {
  if (in.num_ranks() < 1 || in.num_ranks() > kMaxRanks) {
    return Invalid("num_ranks", absl::StrCat(in.num_ranks()),
                   absl::StrCat("1 to ", kMaxRanks, " is valid; it is required"));
  }
  out.num_ranks = static_cast<int>(in.num_ranks());
  if (in.compute_threads() > kMaxThreads) {
    return Invalid("compute_threads", absl::StrCat(in.compute_threads()),
                   absl::StrCat("1 to ", kMaxThreads, " is valid, or 0 for one a core"));
  }
  out.compute_threads = static_cast<int>(in.compute_threads());
  if (out.compute_threads == 0) {
    out.compute_threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  }
  if (in.memory_limit_bytes() > INT64_MAX) {
    return Invalid("memory_limit_bytes", absl::StrCat(in.memory_limit_bytes()), "it is more than any machine has");
  }
  out.memory_limit_bytes = static_cast<int64_t>(in.memory_limit_bytes());
  if (in.pull_staging_bytes() > INT64_MAX || (in.pull_staging_bytes() != 0 && in.pull_staging_bytes() < 4096)) {
    return Invalid("pull_staging_bytes", absl::StrCat(in.pull_staging_bytes()),
                   "at least 4096 is valid, or 0 for 4 GiB");
  }
  out.pull_staging_bytes =
      in.pull_staging_bytes() == 0 ? int64_t{4} << 30 : static_cast<int64_t>(in.pull_staging_bytes());
  return absl::OkStatus();
}

absl::Status ResolveDurations(const v1::DaemonConfig& in, Config& out) {
  out.collective_timeout = absl::Seconds(60);
  out.drain_grace_period = absl::Seconds(20);
  if (in.has_collective_timeout()) {
    const absl::StatusOr<absl::Duration> timeout =
        ParseDuration("collective_timeout", in.collective_timeout(), absl::Milliseconds(1));
    if (!timeout.ok()) return timeout.status();
    out.collective_timeout = *timeout;
  }
  if (in.has_drain_grace_period()) {
    const absl::StatusOr<absl::Duration> grace =
        ParseDuration("drain_grace_period", in.drain_grace_period(), absl::ZeroDuration());
    if (!grace.ok()) return grace.status();
    out.drain_grace_period = *grace;
  }
  return absl::OkStatus();
}

absl::Status ResolveSockets(const v1::DaemonConfig& in, Config& out) {
  if (in.worker_socket().empty()) {
    return Invalid("worker_socket", "not set", "the path of a Unix socket is required, as /run/holdfast/worker.sock");
  }
  out.worker_socket = in.worker_socket();
  out.memory_socket = in.memory_socket().empty() ? in.worker_socket() + ".memory" : in.memory_socket();
  if (absl::Status status = CheckSocketPath("worker_socket", out.worker_socket); !status.ok()) return status;
  if (absl::Status status = CheckSocketPath("memory_socket", out.memory_socket); !status.ok()) return status;
  if (out.memory_socket == out.worker_socket) {
    return Invalid("memory_socket", absl::StrCat("'", out.memory_socket, "' is the worker_socket"), "they must differ");
  }
  if (in.socket_group().empty()) return absl::OkStatus();
  const absl::StatusOr<gid_t> group = FindGroup(in.socket_group());
  if (!group.ok()) return group.status();
  out.socket_group = *group;
  return absl::OkStatus();
}

}  // namespace

std::string TcpAddress::ToString() const {
  return host.find(':') == std::string::npos ? absl::StrCat(host, ":", port) : absl::StrCat("[", host, "]:", port);
}

absl::StatusOr<Config> ResolveConfig(const v1::DaemonConfig& config) {
  Config resolved;
  if (absl::Status status = ResolveSockets(config, resolved); !status.ok()) return status;
  if (absl::Status status = ResolveNumbers(config, resolved); !status.ok()) return status;
  if (absl::Status status = ResolveDurations(config, resolved); !status.ok()) return status;
  for (const auto& [field, text, out] :
       {std::tuple{"operator_address", &config.operator_address(), &resolved.operator_address},
        std::tuple{"metrics_address", &config.metrics_address(), &resolved.metrics_address}}) {
    const absl::StatusOr<std::optional<TcpAddress>> address = ParseAddress(field, *text);
    if (!address.ok()) return address.status();
    *out = *address;
  }
  if (!v1::Backend_IsValid(config.backend())) {
    return Invalid("backend", absl::StrCat(config.backend()), "auto and cpu are valid");
  }
  if (config.backend() == v1::BACKEND_CUDA) {
    return Invalid("backend", "cuda", "this version has no CUDA backend; use cpu or auto");
  }
  if (!v1::LogFormat_IsValid(config.log_format())) {
    return Invalid("log_format", absl::StrCat(config.log_format()), "text and json are valid");
  }
  if (!v1::LogLevel_IsValid(config.log_level())) {
    return Invalid("log_level", absl::StrCat(config.log_level()), "debug, info, warning and error are valid");
  }
  resolved.log_format = config.log_format();
  resolved.log_level = config.log_level();
  resolved.ready_file = config.ready_file();
  return resolved;
}

}  // namespace holdfast
