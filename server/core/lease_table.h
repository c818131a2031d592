// Who holds which rank.
#ifndef HOLDFAST_SERVER_CORE_LEASE_TABLE_H_
#define HOLDFAST_SERVER_CORE_LEASE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"

namespace holdfast {

// What happened, for whoever holds a lease.
struct GroupEvent {
  Epoch epoch;
  std::string reason;
  bool draining = false;
};

// The holder's end of a lease. Called with no lock held, from any thread.
class LeaseListener {
 public:
  virtual ~LeaseListener() = default;
  virtual void OnEvent(const GroupEvent& event) = 0;
  // The lease has ended by the daemon's will or the process's death. Nothing follows.
  virtual void OnRevoked(const absl::Status& reason) = 0;
};

//            Attach               End (memory mapped)
//   kFree ───────────▶ kHeld ───────────────────────▶ kMapped ── Attach by the same process ──▶ kHeld
//     ▲                  │ End (nothing mapped)           │ MemoryReturned by the last token
//     └──────────────────┴────────────────────────────────┘
enum class LeaseState : uint8_t { kFree, kHeld, kMapped };

// One rank's lease.
struct Lease {
  LeaseState state = LeaseState::kFree;
  LeaseId id;
  // As the worker says, and, once the memory is claimed, as the kernel says (0 in another pid namespace).
  int32_t pid = 0;
  // Shown on the memory socket, once.
  std::string token;
  bool memory_claimed = false;
  // The tokens by which a living process may still map the memory: this lease's, once claimed, and those of earlier
  // leases of the same process.
  std::vector<std::string> mapped_by;
  std::shared_ptr<LeaseListener> listener;
};

// All leases of a model. Not thread-safe.
class LeaseTable {
 public:
  explicit LeaseTable(int32_t num_ranks) : leases_(static_cast<size_t>(num_ranks)) {}

  // ALREADY_EXISTS names the process that holds or maps the rank; INVALID_ARGUMENT a rank that is not of this node.
  absl::Status Attach(Rank rank, int32_t pid, std::shared_ptr<LeaseListener> listener);
  // The rank that `id` holds; ABORTED if it has ended.
  absl::StatusOr<Rank> Find(LeaseId id) const;
  // The rank whose memory `token` stands for, or stood for; PERMISSION_DENIED if there is none.
  absl::StatusOr<Rank> FindToken(std::string_view token) const;
  // FAILED_PRECONDITION unless `token` is that of the held lease, and has not been used.
  absl::Status ClaimMemory(Rank rank, std::string_view token, int32_t pid);
  // The lease is over; the memory may still be mapped. Returns what it was.
  Lease End(Rank rank);
  // What was mapped by `token` no longer is. The lease of that token, if any, must have ended.
  void MemoryReturned(Rank rank, std::string_view token);

  const Lease& lease(Rank rank) const { return leases_[static_cast<size_t>(rank.value())]; }
  int32_t NumIn(LeaseState state) const;

 private:
  // By rank.
  std::vector<Lease> leases_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_LEASE_TABLE_H_
