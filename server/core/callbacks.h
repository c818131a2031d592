// Things to do once a lock has been let go.
#ifndef HOLDFAST_SERVER_CORE_CALLBACKS_H_
#define HOLDFAST_SERVER_CORE_CALLBACKS_H_

#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"

namespace holdfast {

// Declare it before the lock's guard: its destructor, and so what was added, runs after the lock has been let go.
class Callbacks {
 public:
  Callbacks() = default;
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
  ~Callbacks() {
    for (absl::AnyInvocable<void()>& callback : callbacks_) std::move(callback)();
  }

  void Add(absl::AnyInvocable<void()> callback) { callbacks_.push_back(std::move(callback)); }

 private:
  std::vector<absl::AnyInvocable<void()>> callbacks_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_CALLBACKS_H_
