// The answer of calls that are declared, but not in this version.
#ifndef HOLDFAST_SERVER_RPC_NOT_YET_H_
#define HOLDFAST_SERVER_RPC_NOT_YET_H_

#include <grpcpp/support/status.h>

namespace holdfast {

inline grpc::Status NoCheckpointsYet() {
  return {grpc::StatusCode::UNIMPLEMENTED,
          "checkpoints are not in this version; Pull brings every tensor of the model and its EMA copies"};
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_NOT_YET_H_
