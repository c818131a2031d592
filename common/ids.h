// Numbers that mean something, and that the compiler keeps apart.
#ifndef HOLDFAST_COMMON_IDS_H_
#define HOLDFAST_COMMON_IDS_H_

#include <compare>
#include <cstdint>
#include <ostream>

namespace holdfast {

// An integer with a name. Explicit to make and to read; ordered; counts up. absl::StrCat takes `.value()`.
template <typename Tag, typename T>
class Id {
 public:
  using ValueType = T;

  constexpr Id() = default;
  constexpr explicit Id(T value) : value_(value) {}

  constexpr T value() const { return value_; }
  constexpr Id Next() const { return Id(value_ + 1); }

  friend constexpr auto operator<=>(Id, Id) = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << +id.value_; }
  template <typename H>
  friend H AbslHashValue(H state, Id id) {
    return H::combine(std::move(state), id.value_);
  }

 private:
  T value_ = T{};
};

// One device of the job; 0 to world − 1.
using Rank = Id<struct RankTag, int32_t>;
// The number of committed optimizer updates.
using Step = Id<struct StepTag, uint64_t>;
// One life of the peer group, ≥ 1.
using Epoch = Id<struct EpochTag, uint64_t>;
// The position of a collective call in a rank's epoch.
using Sequence = Id<struct SequenceTag, uint64_t>;
// Index into ModelLayout::units().
using UnitIndex = Id<struct UnitIndexTag, int32_t>;
// Names one worker's hold on a rank; random, never 0.
using LeaseId = Id<struct LeaseIdTag, uint64_t>;
// Names one collective operation of a model; counts up from 1 and is what completion words tell.
using Completion = Id<struct CompletionTag, uint64_t>;

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_IDS_H_
