// A call that has been made and will be answered.
#ifndef HOLDFAST_TESTS_SERVER_CORE_PENDING_H_
#define HOLDFAST_TESTS_SERVER_CORE_PENDING_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/core/calls.h"

namespace holdfast {

// Thread-safe; copies stand for the same call.
template <typename T>
class Pending {
 public:
  // What the call is to be given, once.
  Done<T> Callback() {
    return [state = state_](absl::StatusOr<T> result) {
      if (state->answered.HasBeenNotified()) {
        ADD_FAILURE() << "answered twice, the second time with " << result.status();
        return;
      }
      state->result = std::move(result);
      state->answered.Notify();
    };
  }

  bool answered() const { return state_->answered.HasBeenNotified(); }

  // The answer; UNKNOWN if there is none within a minute.
  const absl::StatusOr<T>& Wait() const {
    if (state_->answered.WaitForNotificationWithTimeout(absl::Minutes(1))) return state_->result;
    return state_->none;
  }

 private:
  struct State {
    absl::Notification answered;
    absl::StatusOr<T> result = absl::UnknownError("not answered");
    const absl::StatusOr<T> none = absl::UnknownError("the call was not answered within a minute");
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_CORE_PENDING_H_
