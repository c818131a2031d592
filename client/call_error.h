// Turns what gRPC says into a Status that names who called what.
#ifndef HOLDFAST_CLIENT_CALL_ERROR_H_
#define HOLDFAST_CLIENT_CALL_ERROR_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace holdfast {

// "<caller>: <message>" with the same code; OK stays OK. `caller` is like "rank 2 of 'demo': Gather('layers.3')".
absl::Status Annotate(const absl::Status& status, const std::string& caller);

// The same for a call that gRPC has answered.
absl::Status CallError(const grpc::Status& status, const std::string& caller);

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_CALL_ERROR_H_
