// Cancels a stream that stands still.
#ifndef HOLDFAST_CLIENT_STALL_WATCH_H_
#define HOLDFAST_CLIENT_STALL_WATCH_H_

#include <grpcpp/client_context.h>

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace holdfast {

// Cancels `context` when Advance has not been called for `timeout`. Thread-safe.
class StallWatch {
 public:
  // `context` must outlive the watch.
  StallWatch(grpc::ClientContext& context, absl::Duration timeout);
  ~StallWatch();

  void Advance() ABSL_LOCKS_EXCLUDED(mu_);
  // The consumer is busy with what came: that is no stall of the stream's. Until Advance.
  void Pause() ABSL_LOCKS_EXCLUDED(mu_);
  // It has cancelled the stream.
  bool stalled() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Watch() ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ClientContext& context_;
  const absl::Duration timeout_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  absl::Time deadline_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;
  // Last, as it uses all of the above.
  std::thread thread_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_STALL_WATCH_H_
