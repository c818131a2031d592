#include "server/handover/memory_server.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/memory_handover.h"
#include "server/handover/peer.h"

namespace holdfast {
namespace {

// In a poll set: the stop event, the listener, then two entries a connection.
constexpr size_t kStop = 0;
constexpr size_t kListener = 1;
constexpr size_t kFirstConnection = 2;

// Then those who are connected have their turn.
constexpr int kAcceptsInARow = 64;
constexpr absl::Duration kPauseWithoutDescriptors = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryServer>> MemoryServer::Create(Options options, MemoryClaims& claims,
                                                                   std::shared_ptr<spdlog::logger> logger) {
  absl::StatusOr<UnixListener> listener = UnixListener::Listen(options.path, options.group);
  if (!listener.ok()) return listener.status();
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) return absl::UnavailableError(absl::StrCat("cannot make an eventfd: ", std::strerror(errno)));
  return std::unique_ptr<MemoryServer>(
      new MemoryServer(std::move(options), claims, std::move(logger), *std::move(listener), std::move(stop)));
}

MemoryServer::MemoryServer(Options options, MemoryClaims& claims, std::shared_ptr<spdlog::logger> logger,
                           UnixListener listener, UniqueFd stop)
    : options_(std::move(options)),
      claims_(claims),
      logger_(std::move(logger)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      thread_([this] { Run(); }) {}

MemoryServer::~MemoryServer() {
  const uint64_t one = 1;
  // An eventfd takes it unless its count is near 2^64.
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
  thread_.join();
}

void MemoryServer::Run() {
  while (true) {
    std::vector<pollfd> set = PollSet();
    const int ready = ::poll(set.data(), set.size(), PollTimeout());
    if (ready < 0 && errno != EINTR) {
      logger_->error("the memory socket cannot be polled: {}", std::strerror(errno));
      set.clear();
    }
    if (set.empty() || set[kStop].revents != 0) return;
    // After an interruption the answers are unset.
    if (ready < 0) continue;
    HandleConnections(set);
    if (set[kListener].revents != 0) Accept();
  }
}

std::vector<pollfd> MemoryServer::PollSet() const {
  std::vector<pollfd> set;
  set.reserve(kFirstConnection + 2 * connections_.size());
  set.push_back({.fd = stop_.get(), .events = POLLIN, .revents = 0});
  // poll skips negative descriptors.
  const bool accepts = absl::Now() >= accept_after_;
  set.push_back({.fd = accepts ? listener_.fd() : -1, .events = POLLIN, .revents = 0});
  for (const auto& connection : connections_) {
    set.push_back({.fd = connection->socket(), .events = connection->socket_events(), .revents = 0});
    set.push_back({.fd = connection->process(), .events = POLLIN, .revents = 0});
  }
  return set;
}

int MemoryServer::PollTimeout() const {
  const absl::Time now = absl::Now();
  absl::Time next = accept_after_ > now ? accept_after_ : absl::InfiniteFuture();
  for (const auto& connection : connections_) next = std::min(next, connection->deadline());
  if (next == absl::InfiniteFuture()) return -1;
  // Rounded up, so that the deadline has passed when poll returns.
  const int64_t millis = absl::ToInt64Milliseconds(absl::Ceil(next - now, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(millis, 0, 60'000));
}

void MemoryServer::HandleConnections(const std::vector<pollfd>& ready) {
  for (size_t i = 0; i < connections_.size(); ++i) {
    MemoryConnection& connection = *connections_[i];
    const pollfd& socket = ready[kFirstConnection + 2 * i];
    const pollfd& process = ready[kFirstConnection + 2 * i + 1];
    // Death first: it says more than the hang-up that comes with it.
    if (process.revents != 0) {
      connection.HandleProcessDeath();
    } else if (socket.revents != 0) {
      connection.HandleSocket(socket.revents);
    }
    if (!connection.closed() && absl::Now() >= connection.deadline()) connection.HandleDeadline();
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
}

void MemoryServer::Accept() {
  for (int i = 0; i < kAcceptsInARow; ++i) {
    UniqueFd socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      Admit(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      logger_->error("the memory socket cannot accept: {}", std::strerror(errno));
      accept_after_ = absl::Now() + kPauseWithoutDescriptors;
      return;
    } else if (errno == EAGAIN) {
      return;
    }
    // Anything else is of one caller that has gone again.
  }
}

void MemoryServer::Admit(UniqueFd socket) {
  absl::StatusOr<Peer> peer = IdentifyPeer(socket.get());
  if (!peer.ok()) {
    logger_->debug("memory socket: {}", std::string(peer.status().message()));
    return;
  }
  const uid_t uid = peer->uid;
  auto connection = std::make_unique<MemoryConnection>(std::move(socket), *std::move(peer),
                                                       absl::Now() + options_.answer_timeout, claims_, *logger_);
  if (connections_.size() >= options_.max_connections) {
    connection->Refuse(absl::ResourceExhaustedError(
        absl::StrCat("the memory socket has ", connections_.size(), " connections, as many as it takes")));
    return;
  }
  if (!options_.group.has_value() && uid != 0 && uid != ::geteuid()) {
    connection->Refuse(
        absl::PermissionDeniedError(absl::StrCat("user ", uid, " may not have this daemon's memory: run as user ",
                                                 ::geteuid(), ", or configure a socket_group")));
  }
  if (!connection->closed()) connections_.push_back(std::move(connection));
}

}  // namespace holdfast
