// CheckpointService: declared, not in this version.
#ifndef HOLDFAST_SERVER_RPC_CHECKPOINT_SERVICE_H_
#define HOLDFAST_SERVER_RPC_CHECKPOINT_SERVICE_H_

#include "holdfast/v1/checkpoint_service.grpc.pb.h"
#include "server/rpc/not_yet.h"

namespace holdfast {

// Says so on every call, with the way out. Thread-safe.
class CheckpointService final : public v1::CheckpointService::Service {
 public:
  grpc::Status SaveCheckpoint(grpc::ServerContext*, const v1::SaveCheckpointRequest*,
                              v1::SaveCheckpointResponse*) override {
    return NoCheckpointsYet();
  }
  grpc::Status LoadCheckpoint(grpc::ServerContext*, const v1::LoadCheckpointRequest*,
                              v1::LoadCheckpointResponse*) override {
    return NoCheckpointsYet();
  }
  grpc::Status GetOperation(grpc::ServerContext*, const v1::GetOperationRequest*, v1::GetOperationResponse*) override {
    return NoCheckpointsYet();
  }
  grpc::Status WatchOperation(grpc::ServerContext*, const v1::WatchOperationRequest*,
                              grpc::ServerWriter<v1::WatchOperationResponse>*) override {
    return NoCheckpointsYet();
  }
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_CHECKPOINT_SERVICE_H_
