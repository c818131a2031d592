// The gRPC server: listeners, services, health, reflection.
#ifndef HOLDFAST_SERVER_RPC_RPC_SERVER_H_
#define HOLDFAST_SERVER_RPC_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace holdfast {

// Thread-safe.
class RpcServer {
 public:
  // Requests and responses are numbers and names; a spec of many parameters is the largest.
  static constexpr int kMaxMessageBytes = 64 << 20;

  struct Options {
    // A path; nothing may exist there.
    std::string worker_socket;
    // "host:port"; port 0 takes a free one. Empty: none.
    std::string operator_address;
    // They must outlive the server.
    std::vector<grpc::Service*> services;
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  };

  // Serves when it returns. UNAVAILABLE names the address that can't be listened on.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(Options options);
  // Ends every call.
  ~RpcServer();

  // With the port that was taken; empty without TCP.
  const std::string& operator_address() const { return operator_address_; }
  // What grpc.health.v1.Health answers for every service.
  void SetServing(bool serving);
  // Calls under way may go on until `deadline`, then they are cancelled; no new ones are taken.
  void Shutdown(absl::Time deadline);

 private:
  RpcServer() = default;

  std::unique_ptr<grpc::Server> server_;
  std::string operator_address_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_RPC_SERVER_H_
