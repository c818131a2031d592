#include "client/outstanding_calls.h"

#include <utility>

namespace holdfast {

void OutstandingCalls::Add(std::shared_ptr<void> call, grpc::ClientContext* context) {
  std::vector<std::shared_ptr<void>> finished;
  absl::MutexLock lock(&mu_);
  finished.swap(finished_);
  calls_.emplace(context, std::move(call));
}

void OutstandingCalls::Finish(grpc::ClientContext* context) {
  absl::MutexLock lock(&mu_);
  const auto call = calls_.find(context);
  finished_.push_back(std::move(call->second));
  calls_.erase(call);
}

void OutstandingCalls::CancelAll() {
  std::vector<std::pair<grpc::ClientContext*, std::shared_ptr<void>>> calls;
  {
    absl::MutexLock lock(&mu_);
    calls.assign(calls_.begin(), calls_.end());
  }
  // Without the lock, as gRPC may run a callback, and with it Finish, on this thread.
  for (const auto& [context, call] : calls) context->TryCancel();
}

void OutstandingCalls::AwaitNone() {
  std::vector<std::shared_ptr<void>> finished;
  const auto none = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return calls_.empty(); };
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(&none));
  finished.swap(finished_);
}

}  // namespace holdfast
