// The right to write one gradient slot.
#ifndef HOLDFAST_CLIENT_GRADIENT_CLAIM_H_
#define HOLDFAST_CLIENT_GRADIENT_CLAIM_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "common/ids.h"

namespace holdfast {

class GradientRing;

// Made by GradientRing::Claim; gives the slot back when destroyed, unless a reduction has taken it over. Move-only.
class GradientClaim {
 public:
  GradientClaim() = default;
  GradientClaim(std::shared_ptr<GradientRing> ring, UnitIndex unit, int32_t slot, uint64_t generation)
      : ring_(std::move(ring)), unit_(unit), slot_(slot), generation_(generation) {}
  GradientClaim(GradientClaim&& other) noexcept = default;
  GradientClaim& operator=(GradientClaim&& other) noexcept;
  ~GradientClaim();

  // False for one that was moved from or taken over.
  explicit operator bool() const { return ring_ != nullptr; }
  UnitIndex unit() const { return unit_; }
  int32_t slot() const { return slot_; }
  // Which life of the ring it is of; a rejoin begins the next.
  uint64_t generation() const { return generation_; }

 private:
  friend class GradientRing;

  std::shared_ptr<GradientRing> ring_;
  UnitIndex unit_;
  int32_t slot_ = -1;
  uint64_t generation_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_GRADIENT_CLAIM_H_
