#include "server/rpc/admin_service.h"

#include "absl/strings/str_format.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/not_yet.h"
#include "server/rpc/translate.h"

namespace holdfast {

grpc::Status AdminService::GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                                     v1::GetStatusResponse* response) {
  response->set_version(options_.version);
  response->set_backend(options_.backend);
  response->mutable_started()->set_seconds(absl::ToUnixSeconds(options_.started));
  response->set_num_ranks(static_cast<uint32_t>(registry_.num_ranks()));
  response->set_draining(registry_.draining());
  for (const std::shared_ptr<Model>& model : registry_.models()) Fill(*model, *response->add_models());
  response->set_memory_limit_bytes(static_cast<uint64_t>(registry_.memory_limit_bytes()));
  response->set_memory_used_bytes(static_cast<uint64_t>(registry_.memory_used_bytes()));
  return grpc::Status::OK;
}

grpc::Status AdminService::ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                                      v1::ListModelsResponse* response) {
  for (const std::shared_ptr<Model>& model : registry_.models()) *response->add_models() = model->layout().spec();
  return grpc::Status::OK;
}

grpc::Status AdminService::DropModel(grpc::ServerContext*, const v1::DropModelRequest* request,
                                     v1::DropModelResponse* response) {
  const absl::StatusOr<int64_t> freed = registry_.Drop(request->model(), request->force());
  if (!freed.ok()) return ToGrpc(freed.status());
  response->set_freed_bytes(static_cast<uint64_t>(*freed));
  return grpc::Status::OK;
}

grpc::Status AdminService::ListCheckpoints(grpc::ServerContext*, const v1::ListCheckpointsRequest*,
                                           v1::ListCheckpointsResponse*) {
  return NoCheckpointsYet();
}

grpc::Status AdminService::VerifyCheckpoint(grpc::ServerContext*, const v1::VerifyCheckpointRequest*,
                                            v1::VerifyCheckpointResponse*) {
  return NoCheckpointsYet();
}

grpc::Status AdminService::DeleteCheckpoint(grpc::ServerContext*, const v1::DeleteCheckpointRequest*,
                                            v1::DeleteCheckpointResponse*) {
  return NoCheckpointsYet();
}

grpc::Status AdminService::Drain(grpc::ServerContext*, const v1::DrainRequest* request, v1::DrainResponse*) {
  absl::Duration grace = options_.drain_grace_period;
  if (request->has_grace_period()) {
    grace = absl::Seconds(request->grace_period().seconds()) + absl::Nanoseconds(request->grace_period().nanos());
  }
  if (grace < absl::ZeroDuration() || grace > absl::Hours(24)) {
    return ToGrpc(absl::InvalidArgumentError(
        absl::StrFormat("grace_period: %s; it must be from 0 to 24 hours", absl::FormatDuration(grace))));
  }
  options_.drain(grace);
  return grpc::Status::OK;
}

}  // namespace holdfast
