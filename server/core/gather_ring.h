// Which unit is in which gather slot of a rank.
#ifndef HOLDFAST_SERVER_CORE_GATHER_RING_H_
#define HOLDFAST_SERVER_CORE_GATHER_RING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"

namespace holdfast {

// A slot's life: empty → Acquire → pending → MarkReady → ready → (Release: may be overwritten, still found) → empty.
// Not thread-safe. Slots are taken in an order that depends only on the calls, so ranks that make the same calls
// have the same units resident.
class GatherRing {
 public:
  struct Slot {
    std::optional<UnitIndex> unit;
    // The operation that fills, or filled, the slot.
    Completion completion;
    // False while that operation has not ended.
    bool ready = false;
    // The worker has not released it.
    bool in_use = false;
    // Counts up with every use; the released slot with the smallest is overwritten first.
    uint64_t last_use = 0;
  };

  explicit GatherRing(int32_t num_slots) : slots_(static_cast<size_t>(num_slots)) {}

  // The slot that holds `unit`, ready or pending.
  std::optional<int32_t> Find(UnitIndex unit) const;
  // Marks the slot in use again.
  void Use(int32_t slot);
  // Slots that Acquire could take.
  int32_t NumAvailable() const;
  // Takes the slot that has been out of use for longest. One must be available.
  int32_t Acquire(UnitIndex unit, Completion completion);
  void MarkReady(int32_t slot) { at(slot).ready = true; }
  // Gives the unit's slot back, if it has one.
  void Release(UnitIndex unit);
  void ReleaseAll();
  // Forgets a slot's content.
  void Empty(int32_t slot) { at(slot) = Slot{}; }
  void EmptyAll();

  const std::vector<Slot>& slots() const { return slots_; }

 private:
  Slot& at(int32_t slot) { return slots_[static_cast<size_t>(slot)]; }

  std::vector<Slot> slots_;
  uint64_t uses_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_GATHER_RING_H_
