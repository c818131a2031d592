// AdminService: validates, calls the core, translates.
#ifndef HOLDFAST_SERVER_RPC_ADMIN_SERVICE_H_
#define HOLDFAST_SERVER_RPC_ADMIN_SERVICE_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "holdfast/v1/admin_service.grpc.pb.h"
#include "server/core/registry.h"

namespace holdfast {

// Thread-safe.
class AdminService final : public v1::AdminService::Service {
 public:
  struct Options {
    std::string version;
    std::string backend;
    absl::Time started;
    absl::Duration drain_grace_period;
    // Starts the drain and returns at once.
    std::function<void(absl::Duration grace_period)> drain;
  };

  // `registry` must outlive it.
  AdminService(Registry& registry, Options options) : registry_(registry), options_(std::move(options)) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status DropModel(grpc::ServerContext* context, const v1::DropModelRequest* request,
                         v1::DropModelResponse* response) override;
  grpc::Status ListCheckpoints(grpc::ServerContext* context, const v1::ListCheckpointsRequest* request,
                               v1::ListCheckpointsResponse* response) override;
  grpc::Status VerifyCheckpoint(grpc::ServerContext* context, const v1::VerifyCheckpointRequest* request,
                                v1::VerifyCheckpointResponse* response) override;
  grpc::Status DeleteCheckpoint(grpc::ServerContext* context, const v1::DeleteCheckpointRequest* request,
                                v1::DeleteCheckpointResponse* response) override;
  grpc::Status Drain(grpc::ServerContext* context, const v1::DrainRequest* request,
                     v1::DrainResponse* response) override;

 private:
  Registry& registry_;
  const Options options_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_ADMIN_SERVICE_H_
