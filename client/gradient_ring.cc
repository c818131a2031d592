#include "client/gradient_ring.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {

absl::StatusOr<GradientClaim> GradientRing::Claim(UnitIndex unit) {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &GradientRing::HasFreeOrNothingReducing));
  const auto free = std::find(slots_.begin(), slots_.end(), State::kFree);
  if (free == slots_.end()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all ", slots_.size(),
                     " gradient slots are held here and none is being reduced: pass one to ReduceScatter, or drop it, "
                     "or raise gradient_slots in the model's spec"));
  }
  *free = State::kClaimed;
  return GradientClaim(shared_from_this(), unit, static_cast<int32_t>(free - slots_.begin()), generation_);
}

absl::Status GradientRing::StartReducing(GradientClaim& claim) {
  if (claim.ring_.get() != this) {
    return absl::InvalidArgumentError(claim ? "the gradient slot is of another worker"
                                            : "the gradient slot was moved from: acquire another");
  }
  absl::MutexLock lock(&mu_);
  if (claim.generation() != generation_) {
    return absl::FailedPreconditionError(
        "the gradient slot was acquired before the last Rejoin and is given up: acquire another");
  }
  at(claim.slot()) = State::kReducing;
  claim.ring_.reset();
  return absl::OkStatus();
}

void GradientRing::FinishReducing(int32_t slot, uint64_t generation) {
  absl::MutexLock lock(&mu_);
  if (generation == generation_) at(slot) = State::kFree;
}

void GradientRing::GiveBack(int32_t slot, uint64_t generation) {
  absl::MutexLock lock(&mu_);
  if (generation == generation_ && at(slot) == State::kClaimed) at(slot) = State::kFree;
}

void GradientRing::AwaitReduced() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(this, &GradientRing::NothingReducing));
}

void GradientRing::Restart() {
  absl::MutexLock lock(&mu_);
  std::fill(slots_.begin(), slots_.end(), State::kFree);
  ++generation_;
}

bool GradientRing::HasFreeOrNothingReducing() const {
  return NothingReducing() || std::find(slots_.begin(), slots_.end(), State::kFree) != slots_.end();
}

bool GradientRing::NothingReducing() const {
  return std::find(slots_.begin(), slots_.end(), State::kReducing) == slots_.end();
}

GradientClaim& GradientClaim::operator=(GradientClaim&& other) noexcept {
  std::swap(ring_, other.ring_);
  std::swap(unit_, other.unit_);
  std::swap(slot_, other.slot_);
  std::swap(generation_, other.generation_);
  return *this;
}

GradientClaim::~GradientClaim() {
  if (ring_ != nullptr) ring_->GiveBack(slot_, generation_);
}

}  // namespace holdfast
