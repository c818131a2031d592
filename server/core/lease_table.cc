#include "server/core/lease_table.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "common/random_bytes.h"

namespace holdfast {

absl::Status LeaseTable::Attach(Rank rank, int32_t pid, std::shared_ptr<LeaseListener> listener) {
  if (rank.value() < 0 || rank.value() >= static_cast<int32_t>(leases_.size())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rank: %d is not a rank of this node; they are 0 to %d", rank.value(), leases_.size() - 1));
  }
  Lease& lease = leases_[static_cast<size_t>(rank.value())];
  if (lease.state == LeaseState::kHeld) {
    return absl::AlreadyExistsError(
        absl::StrFormat("rank %d is held by process %d; end that worker first", rank.value(), lease.pid));
  }
  if (lease.state == LeaseState::kMapped && lease.pid != pid) {
    return absl::AlreadyExistsError(
        absl::StrFormat("rank %d has no holder, but process %d lives and still maps its memory; end that process first",
                        rank.value(), lease.pid));
  }
  // A process that attaches again may be cut off from its old connection, not from its old mapping.
  std::vector<std::string> still_mapped_by = std::move(lease.mapped_by);
  lease = {.state = LeaseState::kHeld,
           .id = LeaseId(RandomId()),
           .pid = pid,
           .token = RandomBytes(32),
           .memory_claimed = false,
           .mapped_by = std::move(still_mapped_by),
           .listener = std::move(listener)};
  return absl::OkStatus();
}

absl::StatusOr<Rank> LeaseTable::Find(LeaseId id) const {
  for (size_t i = 0; i < leases_.size(); ++i) {
    if (leases_[i].state == LeaseState::kHeld && leases_[i].id == id) return Rank(static_cast<int32_t>(i));
  }
  return absl::AbortedError(absl::StrFormat(
      "lease %016x is not held (it ended with its connection, or never was); attach again", id.value()));
}

absl::StatusOr<Rank> LeaseTable::FindToken(std::string_view token) const {
  for (size_t i = 0; i < leases_.size(); ++i) {
    const Lease& lease = leases_[i];
    if (lease.state == LeaseState::kFree) continue;
    if (lease.token == token || absl::c_linear_search(lease.mapped_by, token)) return Rank(static_cast<int32_t>(i));
  }
  return absl::PermissionDeniedError("the memory token is of no lease that is held; attach again");
}

absl::Status LeaseTable::ClaimMemory(Rank rank, std::string_view token, int32_t pid) {
  Lease& lease = leases_[static_cast<size_t>(rank.value())];
  if (lease.state != LeaseState::kHeld || lease.token != token || lease.memory_claimed) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the memory of rank %d has been claimed with this token before; attach again", rank.value()));
  }
  lease.memory_claimed = true;
  lease.mapped_by.push_back(lease.token);
  if (pid != 0) lease.pid = pid;
  return absl::OkStatus();
}

Lease LeaseTable::End(Rank rank) {
  Lease& lease = leases_[static_cast<size_t>(rank.value())];
  Lease ended = lease;
  if (lease.state == LeaseState::kHeld) {
    lease.state = lease.mapped_by.empty() ? LeaseState::kFree : LeaseState::kMapped;
    lease.listener = nullptr;
  }
  return ended;
}

void LeaseTable::MemoryReturned(Rank rank, std::string_view token) {
  Lease& lease = leases_[static_cast<size_t>(rank.value())];
  std::erase(lease.mapped_by, token);
  if (lease.state == LeaseState::kMapped && lease.mapped_by.empty()) lease = Lease{};
}

int32_t LeaseTable::NumIn(LeaseState state) const {
  return static_cast<int32_t>(
      std::count_if(leases_.begin(), leases_.end(), [state](const Lease& lease) { return lease.state == state; }));
}

}  // namespace holdfast
