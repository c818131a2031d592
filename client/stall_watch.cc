#include "client/stall_watch.h"

namespace holdfast {

StallWatch::StallWatch(grpc::ClientContext& context, absl::Duration timeout)
    : context_(context), timeout_(timeout), deadline_(absl::Now() + timeout), thread_([this] { Watch(); }) {}

StallWatch::~StallWatch() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.Signal();
  }
  thread_.join();
}

void StallWatch::Advance() {
  absl::MutexLock lock(&mu_);
  const bool was_paused = deadline_ == absl::InfiniteFuture();
  deadline_ = absl::Now() + timeout_;
  // Otherwise the thread sees at the old deadline that there is a later one.
  if (was_paused) changed_.Signal();
}

void StallWatch::Pause() {
  absl::MutexLock lock(&mu_);
  deadline_ = absl::InfiniteFuture();
}

bool StallWatch::stalled() const {
  absl::MutexLock lock(&mu_);
  return stalled_;
}

void StallWatch::Watch() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    if (absl::Now() >= deadline_) {
      stalled_ = true;
      context_.TryCancel();
      return;
    }
    changed_.WaitWithDeadline(&mu_, deadline_);
  }
}

}  // namespace holdfast
