// Matches the collective calls of the ranks by sequence number, and finds ranks that disagree.
#ifndef HOLDFAST_SERVER_CORE_COLLECTIVE_GATE_H_
#define HOLDFAST_SERVER_CORE_COLLECTIVE_GATE_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/ids.h"

namespace holdfast {

enum class OperationKind : uint8_t { kGather, kReduceScatter, kBeginUpdate, kCommitUpdate };

// What a rank asks for at a sequence number; all ranks must ask for the same.
struct OperationKey {
  OperationKind kind = OperationKind::kGather;
  // Of Gather and ReduceScatter.
  UnitIndex unit;
  // ReduceScatter: accumulate. BeginUpdate, CommitUpdate: initialize. Part of what must agree.
  bool variant = false;
  // CommitUpdate: ema_step.
  bool ema_step = false;

  friend bool operator==(const OperationKey&, const OperationKey&) = default;
};

// Not thread-safe; holds the numbers of one epoch.
class CollectiveGate {
 public:
  // How far one rank may be ahead of another, in calls.
  static constexpr uint64_t kWindow = 4096;

  enum class Outcome : uint8_t {
    // Others have yet to arrive.
    kWaiting,
    // This was the last rank: everyone has arrived, and agrees.
    kComplete,
    // `other` asked for `other_key` at this number; nothing has changed.
    kDesync,
  };
  struct Arrival {
    Outcome outcome = Outcome::kWaiting;
    Rank other;
    OperationKey other_key;
  };

  explicit CollectiveGate(int32_t num_ranks) : next_(static_cast<size_t>(num_ranks)) {}

  // `sequence` must be the rank's next number, and there must be room.
  Arrival Arrive(Rank rank, Sequence sequence, const OperationKey& key);

  // The sequence number expected of the rank.
  Sequence next(Rank rank) const { return Sequence(next_[static_cast<size_t>(rank.value())]); }
  // How many more calls the rank may make before the slowest one makes its next.
  uint64_t Room(Rank rank) const { return kWindow - (next(rank).value() - first_open_); }
  // Ranks that have not arrived at `sequence`.
  std::vector<Rank> Missing(Sequence sequence) const;
  // Every number starts at 0 again.
  void Reset();

 private:
  struct Entry {
    OperationKey key;
    Rank first;
    int32_t num_arrived = 0;
  };

  // By rank.
  std::vector<uint64_t> next_;
  // Numbers at which some rank, but not every rank, has arrived; entries_[i] is first_open_ + i.
  std::deque<Entry> entries_;
  uint64_t first_open_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_COLLECTIVE_GATE_H_
