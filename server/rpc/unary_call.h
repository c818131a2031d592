// A unary RPC that is answered later.
#ifndef HOLDFAST_SERVER_RPC_UNARY_CALL_H_
#define HOLDFAST_SERVER_RPC_UNARY_CALL_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/rpc/grpc_status.h"

namespace holdfast {

// Owns itself: made by a handler, gone when gRPC is done with the call. Exactly one Answer.
class UnaryCall : public grpc::ServerUnaryReactor {
 public:
  // `on_cancel` runs at most once, on any thread, when the caller has gone or its deadline has passed; whatever it
  // does, the call is still to be answered.
  explicit UnaryCall(absl::AnyInvocable<void()> on_cancel = [] {}) : on_cancel_(std::move(on_cancel)) {}

  void Answer(const absl::Status& status) { Finish(ToGrpc(status)); }

 private:
  void OnCancel() override { std::move(on_cancel_)(); }
  void OnDone() override { delete this; }

  absl::AnyInvocable<void()> on_cancel_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_UNARY_CALL_H_
