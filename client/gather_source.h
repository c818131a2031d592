// Where the result of a Gather comes from.
#ifndef HOLDFAST_CLIENT_GATHER_SOURCE_H_
#define HOLDFAST_CLIENT_GATHER_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/future.h"
#include "client/gather_tickets.h"
#include "client/mapped_memory.h"
#include "client/standing.h"
#include "common/ids.h"

namespace holdfast {

// A unit that is there: 0 ≤ slot < gather_slots.
struct GatheredSlot {
  UnitIndex unit;
  int32_t slot = 0;
  bool hit = false;
};

// Waits for the ticket, then for the slot's completion word. Thread-safe; outlives the session.
class GatherSource final : public FutureSource<GatheredSlot> {
 public:
  struct Wait {
    std::shared_ptr<const MappedMemory> memory;
    std::shared_ptr<Standing> standing;
    uint64_t generation = 0;
    GatherTickets::Entry entry;
    // For messages: who asked.
    std::string caller;
    // When the unit must be there.
    absl::Time deadline;
  };

  explicit GatherSource(Wait wait) : wait_(std::move(wait)) {}

  std::optional<absl::StatusOr<GatheredSlot>> Await(absl::Time deadline) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::optional<absl::StatusOr<GatheredSlot>> AwaitOnce(absl::Time deadline) const;
  std::optional<absl::StatusOr<GatheredSlot>> AwaitWord(const GatherPlace& place, absl::Time deadline) const;
  // The word is void: its epoch has ended, or the slot has been used again. The reason comes on the Attach stream.
  absl::Status WhyVoid() const;

  const Wait wait_;
  absl::Mutex mu_;
  // Kept, as the word moves on.
  std::optional<absl::StatusOr<GatheredSlot>> result_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_GATHER_SOURCE_H_
