// Whether a rank is in step with its peers, and if not, why.
#ifndef HOLDFAST_CLIENT_STANDING_H_
#define HOLDFAST_CLIENT_STANDING_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/ids.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

//   in step ── Fail, or an event of a later epoch ──> out of step: the first reason is kept
//   out of step ── Enter ──> in step, in the next generation
//   any ── Forget ──> out of step, in the next generation: the lease is lost, and what was heard under it no longer
//   holds
// A generation is the time from one Enter to the next. What was begun in an earlier one can no longer do harm.
// Thread-safe.
class Standing {
 public:
  // Out of step until the first Enter.
  Standing() = default;

  // OK while in step.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t generation() const ABSL_LOCKS_EXCLUDED(mu_);
  bool draining() const ABSL_LOCKS_EXCLUDED(mu_);

  // Out of step for this reason, unless there is one already or `generation` is over. `reason` is not OK.
  void Fail(uint64_t generation, absl::Status reason) ABSL_LOCKS_EXCLUDED(mu_);
  // The same for the present generation.
  void Fail(absl::Status reason) ABSL_LOCKS_EXCLUDED(mu_);
  // What the daemon tells of the group; an epoch later than the entered one puts the rank out of step.
  void OnEvent(const v1::GroupEvent& event) ABSL_LOCKS_EXCLUDED(mu_);
  // In step again, in `epoch`; out of it at once if an event told of a later one meanwhile.
  void Enter(Epoch epoch) ABSL_LOCKS_EXCLUDED(mu_);
  // Out of step for `reason`, which is not OK, until Enter. The next lease counts its epochs anew, perhaps at another
  // daemon.
  void Forget(absl::Status reason) ABSL_LOCKS_EXCLUDED(mu_);

  // OK if `generation` is the present one and in step; its failure, or ABORTED if it is over.
  absl::Status StatusOf(uint64_t generation) const ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until StatusOf(generation) is not OK, and returns it; OK if it still is at `deadline`.
  absl::Status AwaitFailure(uint64_t generation, absl::Time deadline) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status StatusOfLocked(uint64_t generation) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_) = absl::UnavailableError("not attached yet");
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  // The latest heard of or entered, and the reason why the one before it ended.
  Epoch latest_epoch_ ABSL_GUARDED_BY(mu_);
  absl::Status latest_reason_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_STANDING_H_
