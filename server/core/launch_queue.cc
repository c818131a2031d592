#include "server/core/launch_queue.h"

#include <utility>

namespace holdfast {

LaunchQueue::~LaunchQueue() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

void LaunchQueue::Push(absl::AnyInvocable<void()> work) {
  absl::MutexLock lock(&mu_);
  work_.push_back(std::move(work));
}

void LaunchQueue::Run() {
  while (true) {
    absl::AnyInvocable<void()> work;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(this, &LaunchQueue::HasWorkOrStops));
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    std::move(work)();
  }
}

}  // namespace holdfast
