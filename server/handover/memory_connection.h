// One caller of the memory socket, from its token to its end.
#ifndef HOLDFAST_SERVER_HANDOVER_MEMORY_CONNECTION_H_
#define HOLDFAST_SERVER_HANDOVER_MEMORY_CONNECTION_H_

#include <spdlog/logger.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/memory_handover.h"
#include "common/unique_fd.h"
#include "server/core/memory_claims.h"
#include "server/handover/peer.h"

namespace holdfast {

//   kReadingToken ──32 bytes──▶ kAnswering ──all sent, granted──▶ kHolding
//        │ garbage, hang-up,         │ refused, hang-up,              │ hang-up,
//        │ death, too late           │ death                          │ death
//        ▼                           ▼                                ▼
//   kClosed                     kClosed                          kClosed (the claims are told of what was granted)
//
// Never waits. Not thread-safe.
class MemoryConnection {
 public:
  // `socket` is non-blocking. The token and the taking of the answer have until `deadline`. `claims` and `logger` must
  // outlive it.
  MemoryConnection(UniqueFd socket, Peer peer, absl::Time deadline, MemoryClaims& claims, spdlog::logger& logger);

  // Sends `reason` instead of reading a token.
  void Refuse(const absl::Status& reason);

  int socket() const { return socket_.get(); }
  // Of the peer; −1 if there is none.
  int process() const { return peer_.process.get(); }
  // What to poll `socket` for, beside hang-ups.
  short socket_events() const;
  // When HandleDeadline is due.
  absl::Time deadline() const;
  bool closed() const { return state_ == State::kClosed; }

  // What poll said of the socket.
  void HandleSocket(short events);
  void HandleProcessDeath();
  void HandleDeadline();

 private:
  enum class State { kReadingToken, kAnswering, kHolding, kClosed };

  void ReadToken();
  void Claim();
  void SendAnswer();
  // What was granted cannot be delivered: the caller sees the end of the answer, and what it may have got is watched
  // until it hangs up.
  void BreakOff();
  void Close();

  UniqueFd socket_;
  const Peer peer_;
  const absl::Time deadline_;
  MemoryClaims& claims_;
  spdlog::logger& logger_;
  State state_ = State::kReadingToken;
  std::string token_;
  // The claims have granted the token's memory.
  bool granted_ = false;
  std::optional<MemoryAnswer> answer_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_HANDOVER_MEMORY_CONNECTION_H_
