// The result of a call that goes on while its caller does something else.
#ifndef HOLDFAST_CLIENT_FUTURE_H_
#define HOLDFAST_CLIENT_FUTURE_H_

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace holdfast {

// absl::Status for a call that answers nothing else, absl::StatusOr<T> otherwise.
template <typename T>
using FutureResult = std::conditional_t<std::is_void_v<T>, absl::Status, absl::StatusOr<T>>;

// Where a future's result comes from. Thread-safe.
template <typename T>
class FutureSource {
 public:
  virtual ~FutureSource() = default;
  // Waits until there is a result, at most until `deadline`; nothing if there is none by then. Once there is one, it
  // is the same ever after.
  virtual std::optional<FutureResult<T>> Await(absl::Time deadline) = 0;
};

// A result that may not be there yet. Copies share it; it may be waited on in any thread, by several at once, and may
// outlive the worker it came from. Dropping it cancels nothing.
template <typename T>
class [[nodiscard]] Future {
 public:
  using Result = FutureResult<T>;

  // Holds no result: only to be assigned to.
  Future() = default;
  explicit Future(std::shared_ptr<FutureSource<T>> source) : source_(std::move(source)) {}

  // False for one that holds no result; then only valid() may be called.
  bool valid() const { return source_ != nullptr; }
  bool ready() const { return source_->Await(absl::InfinitePast()).has_value(); }
  // Waits for the result. Ends by itself, as every call has a deadline (ClientOptions::call_timeout).
  Result Wait() const { return *source_->Await(absl::InfiniteFuture()); }
  // Nothing if there is no result by `deadline`.
  std::optional<Result> WaitUntil(absl::Time deadline) const { return source_->Await(deadline); }

 private:
  std::shared_ptr<FutureSource<T>> source_;
};

// A source whose result is put there once by another thread.
template <typename T>
class Promise final : public FutureSource<T> {
 public:
  // The first call counts; later ones are ignored.
  void Set(FutureResult<T> result) {
    absl::MutexLock lock(&mutex_);
    if (!result_.has_value()) result_ = std::move(result);
  }

  std::optional<FutureResult<T>> Await(absl::Time deadline) override {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithDeadline(absl::Condition(
                                 +[](std::optional<FutureResult<T>>* r) { return r->has_value(); }, &result_),
                             deadline);
    return result_;
  }

 private:
  absl::Mutex mutex_;
  std::optional<FutureResult<T>> result_ ABSL_GUARDED_BY(mutex_);
};

// A future whose result is known.
template <typename T>
Future<T> ReadyFuture(FutureResult<T> result) {
  auto promise = std::make_shared<Promise<T>>();
  promise->Set(std::move(result));
  return Future<T>(std::move(promise));
}

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_FUTURE_H_
