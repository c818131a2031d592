// The one thread that issues a model's work to the devices, in one order.
#ifndef HOLDFAST_SERVER_CORE_LAUNCH_QUEUE_H_
#define HOLDFAST_SERVER_CORE_LAUNCH_QUEUE_H_

#include <deque>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace holdfast {

// Runs what is pushed, one at a time, in the order of the pushes. Thread-safe.
class LaunchQueue {
 public:
  LaunchQueue() : thread_([this] { Run(); }) {}
  // Runs what has been pushed, then ends. Not to be called from the queue's own thread.
  ~LaunchQueue();

  void Push(absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasWorkOrStops() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return stopping_ || !work_.empty(); }

  absl::Mutex mu_;
  std::deque<absl::AnyInvocable<void()>> work_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // Last, as it uses all of the above.
  std::thread thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_LAUNCH_QUEUE_H_
