#include "server/handover/memory_connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "server/logging/log_event.h"

namespace holdfast {

MemoryConnection::MemoryConnection(UniqueFd socket, Peer peer, absl::Time deadline, MemoryClaims& claims,
                                   spdlog::logger& logger)
    : socket_(std::move(socket)), peer_(std::move(peer)), deadline_(deadline), claims_(claims), logger_(logger) {}

void MemoryConnection::Refuse(const absl::Status& reason) {
  LogEvent(logger_, spdlog::level::warn, "memory refused",
           {{"pid", peer_.pid}, {"uid", peer_.uid}, {"reason", std::string(reason.message())}});
  answer_ = MemoryAnswer::Refuse(reason);
  state_ = State::kAnswering;
  SendAnswer();
}

short MemoryConnection::socket_events() const {
  switch (state_) {
    case State::kReadingToken:
      return POLLIN;
    case State::kAnswering:
      return POLLOUT;
    default:
      // What a caller that holds memory writes is left unread: it has nothing more to say, and must not keep us busy.
      return 0;
  }
}

absl::Time MemoryConnection::deadline() const { return state_ == State::kHolding ? absl::InfiniteFuture() : deadline_; }

void MemoryConnection::HandleSocket(short events) {
  if ((events & (POLLHUP | POLLERR)) != 0) {
    Close();
  } else if (state_ == State::kReadingToken && (events & POLLIN) != 0) {
    ReadToken();
  } else if (state_ == State::kAnswering && (events & POLLOUT) != 0) {
    SendAnswer();
  }
}

void MemoryConnection::HandleProcessDeath() {
  if (granted_) {
    LogEvent(logger_, spdlog::level::debug, "process that held memory died", {{"pid", peer_.pid}});
    claims_.ProcessDied(token_, peer_.pid);
  }
  Close();
}

void MemoryConnection::HandleDeadline() {
  LogEvent(logger_, spdlog::level::warn, "memory connection too slow",
           {{"pid", peer_.pid}, {"token_bytes", token_.size()}});
  if (granted_) {
    BreakOff();
  } else {
    Close();
  }
}

void MemoryConnection::ReadToken() {
  // One byte more than a token, so that garbage behind one shows.
  char buffer[kMemoryTokenBytes + 1];
  const ssize_t got = ::recv(socket_.get(), buffer, sizeof(buffer) - token_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    Close();
    return;
  }
  token_.append(buffer, static_cast<size_t>(got));
  if (token_.size() > kMemoryTokenBytes) {
    LogEvent(logger_, spdlog::level::warn, "memory connection sent no token", {{"pid", peer_.pid}});
    Close();
  } else if (token_.size() == kMemoryTokenBytes) {
    Claim();
  }
}

void MemoryConnection::Claim() {
  absl::StatusOr<std::vector<UniqueFd>> descriptors = claims_.ClaimMemory(token_, peer_.pid);
  if (!descriptors.ok()) {
    Refuse(descriptors.status());
    return;
  }
  LogEvent(logger_, spdlog::level::debug, "memory handed over",
           {{"pid", peer_.pid}, {"descriptors", descriptors->size()}});
  granted_ = true;
  answer_ = MemoryAnswer::Grant(*std::move(descriptors));
  state_ = State::kAnswering;
  SendAnswer();
}

void MemoryConnection::SendAnswer() {
  const absl::StatusOr<bool> complete = answer_->Send(socket_.get());
  if (!complete.ok()) {
    LogEvent(logger_, spdlog::level::warn, "memory not delivered",
             {{"pid", peer_.pid}, {"reason", std::string(complete.status().message())}});
    if (granted_) {
      BreakOff();
    } else {
      Close();
    }
  } else if (*complete) {
    answer_.reset();
    if (granted_) {
      state_ = State::kHolding;
    } else {
      Close();
    }
  }
}

void MemoryConnection::BreakOff() {
  answer_.reset();
  ::shutdown(socket_.get(), SHUT_WR);
  state_ = State::kHolding;
}

void MemoryConnection::Close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  answer_.reset();
  socket_.reset();
  if (granted_) claims_.ConnectionClosed(token_);
}

}  // namespace holdfast
