// A lease with all that comes with it.
#ifndef HOLDFAST_CLIENT_HELD_LEASE_H_
#define HOLDFAST_CLIENT_HELD_LEASE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/attach_stream.h"
#include "client/connection.h"
#include "common/ids.h"
#include "common/memory_handover.h"

namespace holdfast {

// The lease, and the descriptors of the rank's memory, not mapped yet.
struct HeldLease {
  std::unique_ptr<AttachStream> stream;
  ReceivedMemory memory;
};

// Which failures are waited out.
enum class LeasePatience : uint8_t {
  // The rank is held, or mapped, by a worker that may be ending.
  kPredecessor,
  // That, and the daemon is away or draining.
  kDaemon,
};

// Attaches as `rank` of `model` and receives its memory; while it fails in a way that `patience` names it tries again,
// until `deadline`, and at least once. The last failure is returned.
absl::StatusOr<HeldLease> TakeLease(Connection& connection, const std::string& model, Rank rank,
                                    const AttachHooks& hooks, LeasePatience patience, absl::Time deadline);

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_HELD_LEASE_H_
