// One Pull stream: tensor after tensor, in pieces.
#ifndef HOLDFAST_SERVER_RPC_PULL_REACTOR_H_
#define HOLDFAST_SERVER_RPC_PULL_REACTOR_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "holdfast/v1/parameter_service.pb.h"
#include "server/core/model.h"

namespace holdfast {

// Owns itself: made by the handler, gone when gRPC is done with the stream. One thing is under way at a time, the
// staging of a tensor or a write, and each starts the next; so all but `cancelled_` needs no lock. Holds one tensor.
class PullReactor : public grpc::ServerWriteReactor<v1::PullResponse> {
 public:
  static PullReactor* Start(const std::shared_ptr<Model>& model, const v1::PullRequest& request);
  static PullReactor* Refuse(const absl::Status& reason);

 private:
  static constexpr size_t kChunkBytes = size_t{1} << 20;

  PullReactor() = default;
  ~PullReactor() override = default;

  void StageNext();
  void Staged(absl::StatusOr<PulledTensor> tensor);
  void WriteChunk();

  void OnWriteDone(bool ok) override;
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override { delete this; }

  std::weak_ptr<Model> model_;
  PullCall call_;
  std::vector<std::string> names_;
  // Index of the tensor under way, plus one.
  size_t num_started_ = 0;
  PulledTensor tensor_;
  // Bytes of it that are written.
  size_t written_bytes_ = 0;
  v1::PullResponse message_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_PULL_REACTOR_H_
