#include "server/rpc/rpc_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.pb.h"

namespace holdfast {

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(Options options) {
  // Both are gRPC's own global switches.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // Reflection describes what is linked; gRPC's own health service comes without its descriptor.
  static_cast<void>(grpc::health::v1::HealthCheckRequest::descriptor());

  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  // Two daemons must not share a port in silence.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int worker_port = 0;
  builder.AddListeningPort(absl::StrCat("unix:", options.worker_socket), grpc::InsecureServerCredentials(),
                           &worker_port);
  int operator_port = 0;
  if (!options.operator_address.empty()) {
    builder.AddListeningPort(options.operator_address, grpc::InsecureServerCredentials(), &operator_port);
  }
  for (grpc::Service* service : options.services) builder.RegisterService(service);
  builder.experimental().SetInterceptorCreators(std::move(options.interceptors));

  std::unique_ptr<grpc::Server> listening = builder.BuildAndStart();
  if (listening == nullptr || worker_port == 0) {
    return absl::UnavailableError(options.operator_address.empty()
                                      ? absl::StrCat("worker_socket: can't listen on '", options.worker_socket, "'")
                                      : absl::StrCat("can't listen on worker_socket '", options.worker_socket,
                                                     "' and operator_address '", options.operator_address,
                                                     "'; is the address in use? Port 0 takes a free one"));
  }
  auto server = std::unique_ptr<RpcServer>(new RpcServer());
  server->server_ = std::move(listening);
  if (!options.operator_address.empty()) {
    const size_t colon = options.operator_address.rfind(':');
    server->operator_address_ = absl::StrCat(options.operator_address.substr(0, colon + 1), operator_port);
  }
  return server;
}

RpcServer::~RpcServer() { Shutdown(absl::Now()); }

void RpcServer::SetServing(bool serving) {
  if (grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService()) health->SetServingStatus(serving);
}

void RpcServer::Shutdown(absl::Time deadline) {
  server_->Shutdown(absl::ToChronoTime(deadline));
  server_->Wait();
}

}  // namespace holdfast
