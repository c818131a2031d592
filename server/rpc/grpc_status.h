// absl::Status as gRPC's.
#ifndef HOLDFAST_SERVER_RPC_GRPC_STATUS_H_
#define HOLDFAST_SERVER_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace holdfast {

// The codes are the same numbers.
inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_GRPC_STATUS_H_
