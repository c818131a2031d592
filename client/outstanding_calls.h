// The asynchronous calls of a session that have not been answered yet.
#ifndef HOLDFAST_CLIENT_OUTSTANDING_CALLS_H_
#define HOLDFAST_CLIENT_OUTSTANDING_CALLS_H_

#include <grpcpp/client_context.h>

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace holdfast {

// Owns the calls, so that none of them ends in a gRPC thread: a ClientContext may hold the last reference to its
// channel, whose destructor waits for those very threads. Finish is for the calls' callbacks, all else for the
// session's thread.
class OutstandingCalls {
 public:
  // Before the call is started. `context` is part of `call`.
  void Add(std::shared_ptr<void> call, grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mu_);
  // The last thing that a call's callback does; it must not touch the call any more.
  void Finish(grpc::ClientContext* context) ABSL_LOCKS_EXCLUDED(mu_);

  void CancelAll() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until every call has been answered; each is, at its deadline at the latest.
  void AwaitNone() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  absl::flat_hash_map<grpc::ClientContext*, std::shared_ptr<void>> calls_ ABSL_GUARDED_BY(mu_);
  // Answered, and to be destroyed by the session's thread.
  std::vector<std::shared_ptr<void>> finished_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_OUTSTANDING_CALLS_H_
