// One Attach stream: its life is the lease's.
#ifndef HOLDFAST_SERVER_RPC_ATTACH_REACTOR_H_
#define HOLDFAST_SERVER_RPC_ATTACH_REACTOR_H_

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "holdfast/v1/parameter_service.pb.h"
#include "server/core/model.h"

namespace holdfast {

// Owns itself: made by the handler, gone when gRPC is done with the stream. Thread-safe.
class AttachReactor : public grpc::ServerWriteReactor<v1::AttachResponse> {
 public:
  // Takes the lease; if that fails, the stream ends with the reason.
  static AttachReactor* Start(const std::shared_ptr<Model>& model, const v1::AttachRequest& request,
                              const std::string& memory_socket);
  // A stream that ends at once.
  static AttachReactor* Refuse(const absl::Status& reason);

 private:
  // What the lease holds: it may outlive the stream.
  class Listener;

  AttachReactor() = default;
  ~AttachReactor() override = default;

  void Write(v1::AttachResponse message) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the stream once what has been written is out.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  std::weak_ptr<Model> model_;
  std::shared_ptr<Listener> listener_;

  absl::Mutex mu_;
  std::optional<LeaseId> lease_ ABSL_GUARDED_BY(mu_);
  // The front one is being written if `writing_`.
  std::deque<v1::AttachResponse> messages_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_ATTACH_REACTOR_H_
