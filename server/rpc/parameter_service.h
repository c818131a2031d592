// ParameterService: validates, calls the core, translates.
#ifndef HOLDFAST_SERVER_RPC_PARAMETER_SERVICE_H_
#define HOLDFAST_SERVER_RPC_PARAMETER_SERVICE_H_

#include <string>
#include <utility>

#include "holdfast/v1/parameter_service.grpc.pb.h"
#include "server/core/registry.h"

namespace holdfast {

// What waits for peers, or streams, is answered by callback; what works on its own thread (RegisterModel takes memory)
// or is not there yet is a plain call.
using ParameterServiceBase =
    v1::ParameterService::WithCallbackMethod_Attach<v1::ParameterService::WithCallbackMethod_Rejoin<
        v1::ParameterService::WithCallbackMethod_Gather<v1::ParameterService::WithCallbackMethod_Release<
            v1::ParameterService::WithCallbackMethod_ReduceScatter<v1::ParameterService::WithCallbackMethod_BeginUpdate<
                v1::ParameterService::WithCallbackMethod_CommitUpdate<v1::ParameterService::WithCallbackMethod_EmaStep<
                    v1::ParameterService::WithCallbackMethod_Pull<v1::ParameterService::Service>>>>>>>>>;

// Thread-safe.
class ParameterService final : public ParameterServiceBase {
 public:
  // `registry` must outlive it. `memory_socket` is the path that workers are told.
  ParameterService(Registry& registry, std::string memory_socket)
      : registry_(registry), memory_socket_(std::move(memory_socket)) {}

  grpc::Status RegisterModel(grpc::ServerContext* context, const v1::RegisterModelRequest* request,
                             v1::RegisterModelResponse* response) override;
  grpc::ServerWriteReactor<v1::AttachResponse>* Attach(grpc::CallbackServerContext* context,
                                                       const v1::AttachRequest* request) override;
  grpc::ServerUnaryReactor* Rejoin(grpc::CallbackServerContext* context, const v1::RejoinRequest* request,
                                   v1::RejoinResponse* response) override;
  grpc::ServerUnaryReactor* Gather(grpc::CallbackServerContext* context, const v1::GatherRequest* request,
                                   v1::GatherResponse* response) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context, const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;
  grpc::ServerUnaryReactor* ReduceScatter(grpc::CallbackServerContext* context, const v1::ReduceScatterRequest* request,
                                          v1::ReduceScatterResponse* response) override;
  grpc::Status ClipGradNorm(grpc::ServerContext* context, const v1::ClipGradNormRequest* request,
                            v1::ClipGradNormResponse* response) override;
  grpc::Status OptimizerStep(grpc::ServerContext* context, const v1::OptimizerStepRequest* request,
                             v1::OptimizerStepResponse* response) override;
  grpc::ServerUnaryReactor* BeginUpdate(grpc::CallbackServerContext* context, const v1::BeginUpdateRequest* request,
                                        v1::BeginUpdateResponse* response) override;
  grpc::ServerUnaryReactor* CommitUpdate(grpc::CallbackServerContext* context, const v1::CommitUpdateRequest* request,
                                         v1::CommitUpdateResponse* response) override;
  grpc::ServerUnaryReactor* EmaStep(grpc::CallbackServerContext* context, const v1::EmaStepRequest* request,
                                    v1::EmaStepResponse* response) override;
  grpc::ServerWriteReactor<v1::PullResponse>* Pull(grpc::CallbackServerContext* context,
                                                   const v1::PullRequest* request) override;

 private:
  Registry& registry_;
  const std::string memory_socket_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_PARAMETER_SERVICE_H_
