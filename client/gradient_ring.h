// Which gradient slots of a rank are free.
#ifndef HOLDFAST_CLIENT_GRADIENT_RING_H_
#define HOLDFAST_CLIENT_GRADIENT_RING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/gradient_claim.h"
#include "common/ids.h"

namespace holdfast {

// A slot's life: free ── Claim ──> claimed ── StartReducing ──> reducing ── FinishReducing ──> free; a claim that is
// destroyed frees its slot too. Restart frees all; claims of before are dead then. Thread-safe. Its maker keeps it
// while a claim is taken over.
class GradientRing : public std::enable_shared_from_this<GradientRing> {
 public:
  explicit GradientRing(int32_t num_slots) : slots_(static_cast<size_t>(num_slots), State::kFree) {}

  // Waits for a slot while some are reducing. RESOURCE_EXHAUSTED: all are claimed, so that waiting would not help.
  absl::StatusOr<GradientClaim> Claim(UnitIndex unit) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the claim over, until FinishReducing. FAILED_PRECONDITION: it is dead. INVALID_ARGUMENT: it was moved from,
  // or is of another ring.
  absl::Status StartReducing(GradientClaim& claim) ABSL_LOCKS_EXCLUDED(mu_);
  void FinishReducing(int32_t slot, uint64_t generation) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until no slot is reducing.
  void AwaitReduced() ABSL_LOCKS_EXCLUDED(mu_);
  // Only when no slot is reducing.
  void Restart() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class GradientClaim;
  enum class State : uint8_t { kFree, kClaimed, kReducing };

  // For a claim that ends unused.
  void GiveBack(int32_t slot, uint64_t generation) ABSL_LOCKS_EXCLUDED(mu_);
  bool HasFreeOrNothingReducing() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  bool NothingReducing() const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  State& at(int32_t slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return slots_[static_cast<size_t>(slot)]; }

  absl::Mutex mu_;
  std::vector<State> slots_ ABSL_GUARDED_BY(mu_);
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_GRADIENT_RING_H_
