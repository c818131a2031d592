#include "client/standing.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {

absl::Status Standing::status() const {
  absl::MutexLock lock(&mu_);
  return status_;
}

uint64_t Standing::generation() const {
  absl::MutexLock lock(&mu_);
  return generation_;
}

bool Standing::draining() const {
  absl::MutexLock lock(&mu_);
  return draining_;
}

void Standing::Fail(uint64_t generation, absl::Status reason) {
  absl::MutexLock lock(&mu_);
  if (generation == generation_ && status_.ok()) status_ = std::move(reason);
}

void Standing::Fail(absl::Status reason) {
  absl::MutexLock lock(&mu_);
  if (status_.ok()) status_ = std::move(reason);
}

void Standing::OnEvent(const v1::GroupEvent& event) {
  absl::MutexLock lock(&mu_);
  if (event.draining()) draining_ = true;
  const Epoch epoch(event.epoch());
  if (epoch <= latest_epoch_) return;
  latest_epoch_ = epoch;
  latest_reason_ = absl::AbortedError(
      absl::StrCat("the epoch before ", epoch.value(), " has ended: ", event.reason(), "; call Rejoin"));
  if (status_.ok()) status_ = latest_reason_;
}

void Standing::Enter(Epoch epoch) {
  absl::MutexLock lock(&mu_);
  ++generation_;
  status_ = latest_epoch_ > epoch ? latest_reason_ : absl::OkStatus();
  if (latest_epoch_ < epoch) latest_epoch_ = epoch;
}

void Standing::Forget(absl::Status reason) {
  absl::MutexLock lock(&mu_);
  ++generation_;
  latest_epoch_ = Epoch();
  status_ = std::move(reason);
  draining_ = false;
}

absl::Status Standing::StatusOf(uint64_t generation) const {
  absl::MutexLock lock(&mu_);
  return StatusOfLocked(generation);
}

absl::Status Standing::StatusOfLocked(uint64_t generation) const {
  if (generation == generation_) return status_;
  return absl::AbortedError("the worker has rejoined since: what was begun before is given up");
}

absl::Status Standing::AwaitFailure(uint64_t generation, absl::Time deadline) const {
  absl::MutexLock lock(&mu_);
  const auto failed = [this, generation]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !StatusOfLocked(generation).ok(); };
  mu_.AwaitWithDeadline(absl::Condition(&failed), deadline);
  return StatusOfLocked(generation);
}

}  // namespace holdfast
