// The asynchronous calls of a session that have not been answered yet.
#ifndef HOLDFAST_CLIENT_OUTSTANDING_CALLS_H_
#define HOLDFAST_CLIENT_OUTSTANDING_CALLS_H_

#include <grpcpp/client_context.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace holdfast {

// Thread-safe.
class OutstandingCalls {
 public:
  // Before the call is started.
  void Add(std::shared_ptr<grpc::ClientContext> context) ABSL_LOCKS_EXCLUDED(mu_);
  // The last thing that the call's callback does.
  void Remove(const std::shared_ptr<grpc::ClientContext>& context) ABSL_LOCKS_EXCLUDED(mu_);

  void CancelAll() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until every call has been answered; each is, at its deadline at the latest.
  void AwaitNone() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  absl::flat_hash_set<std::shared_ptr<grpc::ClientContext>> contexts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_OUTSTANDING_CALLS_H_
