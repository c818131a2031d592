#include "client/held_lease.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"

namespace holdfast {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

absl::StatusOr<HeldLease> TryOnce(Connection& connection, const std::string& model, Rank rank,
                                  const AttachHooks& hooks) {
  v1::AttachRequest request;
  request.set_model(model);
  request.set_rank(static_cast<uint32_t>(rank.value()));
  request.set_pid(::getpid());
  absl::StatusOr<std::unique_ptr<AttachStream>> stream = AttachStream::Open(connection, request, hooks);
  if (!stream.ok()) return stream.status();
  const v1::Attached& attached = (*stream)->attached();
  absl::StatusOr<ReceivedMemory> memory =
      ReceiveMemory(attached.memory_socket(), attached.memory_token(), static_cast<size_t>(attached.arenas_size()),
                    absl::Now() + connection.options().call_timeout);
  if (!memory.ok()) return Annotate(memory.status(), "receiving the rank's memory");
  return HeldLease{.stream = *std::move(stream), .memory = *std::move(memory)};
}

bool IsWaitedOut(const absl::Status& status, LeasePatience patience) {
  if (absl::IsAlreadyExists(status)) return true;
  return patience == LeasePatience::kDaemon && (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status));
}

}  // namespace

absl::StatusOr<HeldLease> TakeLease(Connection& connection, const std::string& model, Rank rank,
                                    const AttachHooks& hooks, LeasePatience patience, absl::Time deadline) {
  absl::Duration pause = kFirstPause;
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<HeldLease> lease = TryOnce(connection, model, rank, hooks);
    if (lease.ok() || !IsWaitedOut(lease.status(), patience)) return lease;
    const absl::Time now = absl::Now();
    if (now + pause > deadline) {
      return absl::Status(lease.status().code(),
                          absl::StrCat(lease.status().message(), " (given up after ", attempt, " attempts)"));
    }
    connection.Progress(absl::StrCat("rank ", rank.value(), " of '", model, "': attempt ", attempt,
                                     " to attach: ", lease.status().message(), "; trying for another ",
                                     absl::FormatDuration(absl::Trunc(deadline - now, absl::Milliseconds(1)))));
    absl::SleepFor(pause);
    pause = std::min(pause * 2, kLongestPause);
    // A daemon that is away is waited for, rather than asked.
    if (patience == LeasePatience::kDaemon) connection.WaitUntilConnected(deadline);
  }
}

}  // namespace holdfast
