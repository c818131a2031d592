#include "client/outstanding_calls.h"

#include <utility>
#include <vector>

namespace holdfast {

void OutstandingCalls::Add(std::shared_ptr<grpc::ClientContext> context) {
  absl::MutexLock lock(&mu_);
  contexts_.insert(std::move(context));
}

void OutstandingCalls::Remove(const std::shared_ptr<grpc::ClientContext>& context) {
  absl::MutexLock lock(&mu_);
  contexts_.erase(context);
}

void OutstandingCalls::CancelAll() {
  std::vector<std::shared_ptr<grpc::ClientContext>> contexts;
  {
    absl::MutexLock lock(&mu_);
    contexts.assign(contexts_.begin(), contexts_.end());
  }
  // Without the lock, as gRPC may run a callback, and with it Remove, on this thread.
  for (const auto& context : contexts) context->TryCancel();
}

void OutstandingCalls::AwaitNone() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(
      +[](absl::flat_hash_set<std::shared_ptr<grpc::ClientContext>>* c) { return c->empty(); }, &contexts_));
}

}  // namespace holdfast
