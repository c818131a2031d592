#include "server/core/gather_ring.h"

#include <algorithm>

namespace holdfast {
namespace {

// A pending slot is being written; only a ready or an empty one can be taken.
bool IsAvailable(const GatherRing::Slot& slot) { return !slot.in_use && (slot.ready || !slot.unit.has_value()); }

}  // namespace

std::optional<int32_t> GatherRing::Find(UnitIndex unit) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].unit == unit) return static_cast<int32_t>(i);
  }
  return std::nullopt;
}

void GatherRing::Use(int32_t slot) {
  at(slot).in_use = true;
  at(slot).last_use = ++uses_;
}

int32_t GatherRing::NumAvailable() const {
  return static_cast<int32_t>(std::count_if(slots_.begin(), slots_.end(), IsAvailable));
}

int32_t GatherRing::Acquire(UnitIndex unit, Completion completion) {
  int32_t oldest = -1;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!IsAvailable(slots_[i])) continue;
    if (oldest < 0 || slots_[i].last_use < at(oldest).last_use) oldest = static_cast<int32_t>(i);
  }
  at(oldest) = {.unit = unit, .completion = completion, .ready = false, .in_use = true, .last_use = ++uses_};
  return oldest;
}

void GatherRing::Release(UnitIndex unit) {
  if (const std::optional<int32_t> slot = Find(unit)) at(*slot).in_use = false;
}

void GatherRing::ReleaseAll() {
  for (Slot& slot : slots_) slot.in_use = false;
}

void GatherRing::EmptyAll() { std::fill(slots_.begin(), slots_.end(), Slot{}); }

}  // namespace holdfast
