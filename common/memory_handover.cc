#include "common/memory_handover.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace holdfast {
namespace {

constexpr uint32_t kMagic = 0x314d4648;  // "HFM1"
constexpr size_t kMaxTextBytes = 1024;
// The kernel takes 253; fewer keep the control buffer small.
constexpr size_t kBatch = 64;

static_assert(kMaxSocketPathBytes == sizeof(sockaddr_un{}.sun_path) - 1);

struct Header {
  uint32_t magic = kMagic;
  uint32_t code = 0;
  uint32_t num_descriptors = 0;
  uint32_t text_bytes = 0;
};
static_assert(sizeof(Header) == 16);

// Room for one batch of descriptors, aligned as the kernel's header wants it.
struct ControlBuffer {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kBatch * sizeof(int))] = {};
};

size_t BatchOf(size_t remaining) { return std::min(remaining, kBatch); }

// The worker's end of the conversation.
class Receiver {
 public:
  Receiver(std::string_view path, absl::Time deadline) : path_(path), deadline_(deadline) {}

  absl::Status Connect();
  absl::Status SendToken(std::string_view token);
  // The header and its text: OK if the daemon grants `expected_count` descriptors.
  absl::Status ReceiveVerdict(size_t expected_count);
  absl::StatusOr<std::vector<UniqueFd>> ReceiveDescriptors(size_t count);
  UniqueFd TakeSocket() { return std::move(socket_); }

 private:
  absl::Status Wait(short events);
  absl::Status ReceiveExactly(absl::Span<char> buffer);
  absl::Status ReceiveBatch(size_t count, std::vector<UniqueFd>& descriptors);
  absl::Status Errno(const char* what) const {
    return absl::UnavailableError(absl::StrCat(what, " the memory socket '", path_, "': ", std::strerror(errno)));
  }
  absl::Status HungUp() const {
    return absl::UnavailableError(
        absl::StrCat("the daemon closed the connection to its memory socket '", path_, "' before it had answered"));
  }
  absl::Status Late() const {
    return absl::DeadlineExceededError(absl::StrCat("no answer from the memory socket '", path_, "' by the deadline"));
  }
  absl::Status Nonsense(const std::string& what) const {
    return absl::InternalError(absl::StrCat("the answer from the memory socket '", path_, "' makes no sense: ", what));
  }

  const std::string path_;
  const absl::Time deadline_;
  UniqueFd socket_;
};

absl::Status Receiver::Connect() {
  socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_) return Errno("cannot make a socket for");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, kMaxSocketPathBytes);
  while (true) {
    const absl::Duration left = deadline_ - absl::Now();
    if (left <= absl::ZeroDuration()) return Late();
    // connect() waits while the daemon's backlog is full, and poll() cannot: the send timeout bounds it. 0 would mean
    // for ever.
    const timeval timeout = absl::ToTimeval(std::clamp(left, absl::Milliseconds(1), absl::Duration(absl::Hours(24))));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return absl::OkStatus();
    }
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EACCES) {
      return absl::PermissionDeniedError(absl::StrCat("cannot connect to the memory socket '", path_,
                                                      "': its mode forbids it; run as the daemon's user or in its "
                                                      "socket_group"));
    }
    return Errno("is holdfastd running? cannot connect to");
  }
}

absl::Status Receiver::Wait(short events) {
  pollfd poll_fd = {.fd = socket_.get(), .events = events, .revents = 0};
  while (true) {
    const absl::Duration left = deadline_ - absl::Now();
    if (left <= absl::ZeroDuration()) return Late();
    const int64_t millis = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int ready = ::poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(millis, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Errno("cannot wait for");
  }
}

absl::Status Receiver::SendToken(std::string_view token) {
  while (!token.empty()) {
    const ssize_t sent = ::send(socket_.get(), token.data(), token.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      token.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (absl::Status status = Wait(POLLOUT); !status.ok()) return status;
    } else if (errno == EPIPE || errno == ECONNRESET) {
      // The daemon has refused before it read the token; its reason may be there to read.
      return absl::OkStatus();
    } else if (errno != EINTR) {
      return Errno("cannot write to");
    }
  }
  return absl::OkStatus();
}

absl::Status Receiver::ReceiveExactly(absl::Span<char> buffer) {
  while (!buffer.empty()) {
    if (absl::Status status = Wait(POLLIN); !status.ok()) return status;
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return HungUp();
    if (got > 0) {
      buffer.remove_prefix(static_cast<size_t>(got));
    } else if (errno != EAGAIN && errno != EINTR) {
      return Errno("cannot read from");
    }
  }
  return absl::OkStatus();
}

absl::Status Receiver::ReceiveVerdict(size_t expected_count) {
  Header header;
  char raw[sizeof(Header)];
  if (absl::Status status = ReceiveExactly(absl::MakeSpan(raw)); !status.ok()) return status;
  std::memcpy(&header, raw, sizeof(header));
  if (header.magic != kMagic || header.text_bytes > kMaxTextBytes) return Nonsense("it is not of this protocol");
  std::string text(header.text_bytes, '\0');
  if (absl::Status status = ReceiveExactly(absl::MakeSpan(text)); !status.ok()) return status;
  if (header.code != 0) {
    if (header.code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
      return Nonsense(absl::StrCat("status code ", header.code));
    }
    return absl::Status(static_cast<absl::StatusCode>(header.code), text);
  }
  if (header.num_descriptors != expected_count) {
    return Nonsense(absl::StrCat(header.num_descriptors, " descriptors instead of ", expected_count));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<UniqueFd>> Receiver::ReceiveDescriptors(size_t count) {
  std::vector<UniqueFd> descriptors;
  while (descriptors.size() < count) {
    if (absl::Status status = ReceiveBatch(BatchOf(count - descriptors.size()), descriptors); !status.ok()) {
      return status;
    }
  }
  return descriptors;
}

absl::Status Receiver::ReceiveBatch(size_t count, std::vector<UniqueFd>& descriptors) {
  char byte = 0;
  iovec piece = {.iov_base = &byte, .iov_len = 1};
  ControlBuffer control;
  msghdr message{};
  while (true) {
    if (absl::Status status = Wait(POLLIN); !status.ok()) return status;
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return HungUp();
    if (got > 0) break;
    if (errno != EAGAIN && errno != EINTR) return Errno("cannot read from");
  }
  size_t received = 0;
  // Owned before anything is judged, so that nothing leaks.
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t in_part = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < in_part; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      descriptors.emplace_back(fd);
    }
    received += in_part;
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 || received != count) {
    return absl::InternalError(absl::StrCat("only ", received, " of ", count, " descriptors arrived from '", path_,
                                            "': is this process at its limit of open files (ulimit -n)?"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReceivedMemory> ReceiveMemory(std::string_view path, std::string_view token, size_t expected_count,
                                             absl::Time deadline) {
  if (path.empty() || path.size() > kMaxSocketPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("memory socket path '", std::string(path), "' has ", path.size(),
                                                   " bytes; 1 to ", kMaxSocketPathBytes, " are possible"));
  }
  if (token.size() != kMemoryTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory token has ", token.size(), " bytes; it must have ", kMemoryTokenBytes));
  }
  Receiver receiver(path, deadline);
  absl::Status status = receiver.Connect();
  if (status.ok()) status = receiver.SendToken(token);
  if (status.ok()) status = receiver.ReceiveVerdict(expected_count);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<UniqueFd>> descriptors = receiver.ReceiveDescriptors(expected_count);
  if (!descriptors.ok()) return descriptors.status();
  return ReceivedMemory{.connection = receiver.TakeSocket(), .descriptors = *std::move(descriptors)};
}

MemoryAnswer MemoryAnswer::Grant(std::vector<UniqueFd> descriptors) {
  MemoryAnswer answer;
  const Header header = {.num_descriptors = static_cast<uint32_t>(descriptors.size())};
  answer.bytes_.assign(reinterpret_cast<const char*>(&header), sizeof(header));
  answer.descriptors_ = std::move(descriptors);
  return answer;
}

MemoryAnswer MemoryAnswer::Refuse(const absl::Status& reason) {
  MemoryAnswer answer;
  const absl::string_view text = reason.message().substr(0, kMaxTextBytes);
  const Header header = {.code = static_cast<uint32_t>(reason.code()),
                         .text_bytes = static_cast<uint32_t>(text.size())};
  answer.bytes_.assign(reinterpret_cast<const char*>(&header), sizeof(header));
  answer.bytes_.append(text.data(), text.size());
  return answer;
}

absl::StatusOr<bool> MemoryAnswer::Send(int socket) {
  while (sent_bytes_ < bytes_.size() || sent_descriptors_ < descriptors_.size()) {
    char batch_byte = 0;
    iovec piece = {.iov_base = &batch_byte, .iov_len = 1};
    ControlBuffer control;
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    size_t batch = 0;
    if (sent_bytes_ < bytes_.size()) {
      piece = {.iov_base = bytes_.data() + sent_bytes_, .iov_len = bytes_.size() - sent_bytes_};
    } else {
      batch = BatchOf(descriptors_.size() - sent_descriptors_);
      message.msg_control = control.bytes;
      message.msg_controllen = CMSG_SPACE(batch * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(batch * sizeof(int));
      for (size_t i = 0; i < batch; ++i) {
        const int fd = descriptors_[sent_descriptors_ + i].get();
        std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof(fd));
      }
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return false;
      return absl::UnavailableError(absl::StrCat("cannot answer on the memory socket: ", std::strerror(errno)));
    }
    if (batch == 0) sent_bytes_ += static_cast<size_t>(sent);
    sent_descriptors_ += batch;
  }
  return true;
}

}  // namespace holdfast
