// What is checked before the daemon starts, and what stands in for what was not set.
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/memory_handover.h"
#include "server/config/config.h"

namespace holdfast {
namespace {

constexpr uint64_t kMaxRanks = 64;
constexpr uint64_t kMaxThreads = 256;
constexpr uint64_t kMinPullStagingBytes = 4096;
constexpr int64_t kDefaultPullStagingBytes = int64_t{4} << 30;
constexpr absl::Duration kDefaultCollectiveTimeout = absl::Seconds(60);
constexpr absl::Duration kDefaultDrainGracePeriod = absl::Seconds(20);
constexpr absl::Duration kLongest = absl::Hours(24);

// Fills a Config from a message, and collects what is wrong with it.
class Resolver {
 public:
  Resolver(const v1::DaemonConfig& in, const FieldOrigins& origins) : in_(in), origins_(origins) {}

  absl::StatusOr<Config> Resolve();

 private:
  void Wrong(const std::string& field, const std::string& what) {
    problems_.push_back(absl::StrCat(origins_.Describe(field), ": ", what));
  }

  void ResolveSockets();
  void ResolveGroup();
  void ResolveAddresses();
  void ResolveChoices();
  std::string AbsolutePath(const std::string& field, const std::string& path);
  void CheckSocketPath(const std::string& field, const std::string& path);
  int64_t Number(const std::string& field, uint64_t value, uint64_t least, uint64_t most, const std::string& valid);
  absl::Duration Time(const std::string& field, const google::protobuf::Duration& value, absl::Duration least);
  std::optional<TcpAddress> Address(const std::string& field, const std::string& value);

  const v1::DaemonConfig& in_;
  const FieldOrigins& origins_;
  Config out_;
  std::vector<std::string> problems_;
};

std::string Resolver::AbsolutePath(const std::string& field, const std::string& path) {
  if (path.empty()) return path;
  if (std::any_of(path.begin(), path.end(), absl::ascii_iscntrl)) {
    Wrong(field, "a control character is in the path");
    return path;
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  const std::filesystem::path directory = absolute.parent_path();
  if (absolute.filename().empty()) {
    Wrong(field, absl::StrCat("'", path, "' is a directory; the path of a file in it is needed"));
  } else if (!std::filesystem::is_directory(directory, error)) {
    Wrong(field, absl::StrCat("'", path, "': there is no directory '", directory.string(), "'; make it first"));
  }
  return absolute;
}

void Resolver::CheckSocketPath(const std::string& field, const std::string& path) {
  if (path.size() <= kMaxSocketPathBytes) return;
  Wrong(field, absl::StrCat("'", path, "' has ", path.size(), " bytes; a socket's path has ", kMaxSocketPathBytes,
                            " at the most, so use a shorter directory"));
}

void Resolver::ResolveSockets() {
  if (in_.worker_socket().empty()) {
    Wrong("worker_socket", "it is required: the path of a Unix socket, as /run/holdfast/worker.sock");
    return;
  }
  out_.worker_socket = AbsolutePath("worker_socket", in_.worker_socket());
  CheckSocketPath("worker_socket", out_.worker_socket);
  if (in_.memory_socket().empty()) {
    out_.memory_socket = out_.worker_socket + ".memory";
    // What is wrong with the other one has been said.
    if (problems_.empty()) CheckSocketPath("memory_socket", out_.memory_socket);
    return;
  }
  out_.memory_socket = AbsolutePath("memory_socket", in_.memory_socket());
  CheckSocketPath("memory_socket", out_.memory_socket);
  if (out_.memory_socket == out_.worker_socket) {
    Wrong("memory_socket", absl::StrCat("'", in_.memory_socket(), "' is the worker_socket; they must be two"));
  }
}

void Resolver::ResolveGroup() {
  out_.socket_group_name = in_.socket_group();
  if (in_.socket_group().empty()) return;
  std::array<char, 16384> storage;
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(in_.socket_group().c_str(), &entry, storage.data(), storage.size(), &found) != 0 ||
      found == nullptr) {
    Wrong("socket_group", absl::StrCat("'", in_.socket_group(), "': this machine has no such group (getent group)"));
    return;
  }
  out_.socket_group = found->gr_gid;
}

std::optional<TcpAddress> Resolver::Address(const std::string& field, const std::string& value) {
  if (value.empty()) return std::nullopt;
  absl::StatusOr<TcpAddress> address = ParseLoopbackAddress(value);
  if (address.ok()) return *std::move(address);
  Wrong(field, absl::StrCat("'", value, "': ", address.status().message()));
  return std::nullopt;
}

void Resolver::ResolveAddresses() {
  out_.operator_address = Address("operator_address", in_.operator_address());
  out_.metrics_address = Address("metrics_address", in_.metrics_address());
  if (!out_.metrics_address.has_value()) return;
  if (out_.metrics_address->is_ipv6()) {
    Wrong("metrics_address",
          absl::StrCat("'", in_.metrics_address(), "': metrics are served on IPv4 only, as on 127.0.0.1"));
  }
  if (out_.operator_address.has_value() && out_.metrics_address->port != 0 &&
      out_.metrics_address->ToString() == out_.operator_address->ToString()) {
    Wrong("metrics_address", absl::StrCat("'", in_.metrics_address(), "' is the operator_address; they must be two"));
  }
}

int64_t Resolver::Number(const std::string& field, uint64_t value, uint64_t least, uint64_t most,
                         const std::string& valid) {
  if (value < least || value > most) Wrong(field, absl::StrCat(value, "; ", valid));
  return static_cast<int64_t>(std::min(value, most));
}

absl::Duration Resolver::Time(const std::string& field, const google::protobuf::Duration& value, absl::Duration least) {
  constexpr int32_t kNanosInSecond = 1'000'000'000;
  if (value.nanos() <= -kNanosInSecond || value.nanos() >= kNanosInSecond ||
      (value.seconds() > 0 && value.nanos() < 0) || (value.seconds() < 0 && value.nanos() > 0)) {
    Wrong(field, absl::StrCat(value.nanos(), " nanos; less than a second, with the sign of seconds, is valid"));
  }
  const absl::Duration duration = absl::Seconds(value.seconds()) + absl::Nanoseconds(value.nanos());
  if (duration < least || duration > kLongest) {
    Wrong(field, absl::StrCat(absl::FormatDuration(duration), "; ", absl::FormatDuration(least), " to 24h is valid"));
  }
  return duration;
}

void Resolver::ResolveChoices() {
  if (in_.backend() == v1::BACKEND_CUDA) {
    Wrong("backend", "this version has no CUDA backend; use cpu or auto");
  } else if (!v1::Backend_IsValid(in_.backend())) {
    Wrong("backend", absl::StrCat(in_.backend(), "; valid are auto, cpu"));
  }
  if (!v1::LogFormat_IsValid(in_.log_format())) {
    Wrong("log_format", absl::StrCat(in_.log_format(), "; valid are text, json"));
  } else if (in_.log_format() != v1::LOG_FORMAT_UNSPECIFIED) {
    out_.log_format = in_.log_format();
  }
  if (!v1::LogLevel_IsValid(in_.log_level())) {
    Wrong("log_level", absl::StrCat(in_.log_level(), "; valid are debug, info, warning, error"));
  } else if (in_.log_level() != v1::LOG_LEVEL_UNSPECIFIED) {
    out_.log_level = in_.log_level();
  }
}

absl::StatusOr<Config> Resolver::Resolve() {
  ResolveSockets();
  ResolveGroup();
  ResolveAddresses();
  ResolveChoices();
  out_.num_ranks =
      static_cast<int>(Number("num_ranks", in_.num_ranks(), 1, kMaxRanks, "1 to 64 is valid, and it is required"));
  out_.compute_threads = static_cast<int>(
      Number("compute_threads", in_.compute_threads(), 0, kMaxThreads, "1 to 256 is valid, or 0 for one a core"));
  if (out_.compute_threads == 0) {
    out_.compute_threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, int{kMaxThreads});
  }
  constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();
  out_.memory_limit_bytes = Number("memory_limit_bytes", in_.memory_limit_bytes(), 0, kMostBytes,
                                   "9223372036854775807 at the most is valid, or 0 for 90 % of what is free");
  out_.pull_staging_bytes = kDefaultPullStagingBytes;
  if (in_.pull_staging_bytes() != 0) {
    out_.pull_staging_bytes = Number("pull_staging_bytes", in_.pull_staging_bytes(), kMinPullStagingBytes, kMostBytes,
                                     "4096 to 9223372036854775807 is valid, or 0 for 4 GiB");
  }
  out_.collective_timeout = kDefaultCollectiveTimeout;
  if (in_.has_collective_timeout()) {
    out_.collective_timeout = Time("collective_timeout", in_.collective_timeout(), absl::Milliseconds(1));
  }
  out_.drain_grace_period = kDefaultDrainGracePeriod;
  if (in_.has_drain_grace_period()) {
    out_.drain_grace_period = Time("drain_grace_period", in_.drain_grace_period(), absl::ZeroDuration());
  }
  out_.ready_file = AbsolutePath("ready_file", in_.ready_file());
  if (!out_.ready_file.empty() && (out_.ready_file == out_.worker_socket || out_.ready_file == out_.memory_socket)) {
    Wrong("ready_file", absl::StrCat("'", in_.ready_file(), "' is the path of a socket; they must be two"));
  }
  if (!problems_.empty()) return absl::InvalidArgumentError(absl::StrJoin(problems_, "\n"));
  return std::move(out_);
}

}  // namespace

absl::StatusOr<Config> ResolveConfig(const v1::DaemonConfig& config, const FieldOrigins& origins) {
  return Resolver(config, origins).Resolve();
}

}  // namespace holdfast
