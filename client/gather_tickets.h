// Which units a rank has asked to be gathered, and where they are or will be.
#ifndef HOLDFAST_CLIENT_GATHER_TICKETS_H_
#define HOLDFAST_CLIENT_GATHER_TICKETS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/future.h"
#include "common/ids.h"

namespace holdfast {

// The slot a unit is in when the slot's word says `completion`.
struct GatherPlace {
  int32_t slot = 0;
  Completion completion;
  bool hit = false;
};

// Known once the daemon has answered.
using GatherTicketPromise = std::shared_ptr<Promise<GatherPlace>>;

// The bookkeeping of one step: what is decided here depends on nothing but the calls that the rank makes, never on
// time, as all ranks must come to the same sequence of calls. Not thread-safe; the promises are.
class GatherTickets {
 public:
  struct Entry {
    UnitIndex unit;
    GatherTicketPromise ticket;
  };
  // What one Gather takes.
  struct Plan {
    Entry unit;
    // False: everything is held already; nothing is to be asked of the daemon.
    bool needs_call = false;
    // Of the units to prefetch, those that have no ticket yet.
    std::vector<Entry> prefetch;
    // To be told to the daemon in the same call.
    std::vector<Entry> released;
  };

  explicit GatherTickets(int32_t num_slots) : num_slots_(num_slots) {}

  // Holds `unit` and `prefetch` from now on. RESOURCE_EXHAUSTED, with nothing changed: that takes more slots than there
  // are; the message counts them.
  absl::StatusOr<Plan> Begin(UnitIndex unit, absl::Span<const UnitIndex> prefetch);
  // The unit is no longer held; nothing if it was not.
  void Release(UnitIndex unit);
  // What was released and not yet told.
  std::vector<Entry> TakeReleased();
  // The step is over, or given up.
  void Clear() { tickets_.clear(); }

 private:
  struct Ticket {
    GatherTicketPromise promise;
    // The daemon has not been told yet, so that it can still be taken back.
    bool released = false;
  };

  bool Holds(UnitIndex unit) const;
  // True if the ticket is new.
  bool Hold(UnitIndex unit);

  const int32_t num_slots_;
  absl::btree_map<UnitIndex, Ticket> tickets_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_GATHER_TICKETS_H_
