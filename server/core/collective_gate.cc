#include "server/core/collective_gate.h"

#include <algorithm>

namespace holdfast {

CollectiveGate::Arrival CollectiveGate::Arrive(Rank rank, Sequence sequence, const OperationKey& key) {
  uint64_t& next = next_[static_cast<size_t>(rank.value())];
  const uint64_t index = sequence.value() - first_open_;
  // Every rank arrives at its numbers one by one, so a new entry is always the next one.
  if (index == entries_.size()) entries_.push_back({.key = key, .first = rank});
  Entry& entry = entries_[index];
  if (!(entry.key == key)) return {.outcome = Outcome::kDesync, .other = entry.first, .other_key = entry.key};
  ++next;
  if (++entry.num_arrived < static_cast<int32_t>(next_.size())) return {.outcome = Outcome::kWaiting};
  // A rank can only be at a later number if it was at this one, so the oldest entry is always the first to fill.
  entries_.pop_front();
  ++first_open_;
  return {.outcome = Outcome::kComplete};
}

std::vector<Rank> CollectiveGate::Missing(Sequence sequence) const {
  std::vector<Rank> missing;
  for (size_t i = 0; i < next_.size(); ++i) {
    if (next_[i] <= sequence.value()) missing.push_back(Rank(static_cast<int32_t>(i)));
  }
  return missing;
}

void CollectiveGate::Reset() {
  std::fill(next_.begin(), next_.end(), 0);
  entries_.clear();
  first_open_ = 0;
}

}  // namespace holdfast
