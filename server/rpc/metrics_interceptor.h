// Counts and times every RPC.
#ifndef HOLDFAST_SERVER_RPC_METRICS_INTERCEPTOR_H_
#define HOLDFAST_SERVER_RPC_METRICS_INTERCEPTOR_H_

#include <grpcpp/support/server_interceptor.h>
#include <spdlog/logger.h>

#include <memory>
#include <utility>

#include "server/metrics/metrics.h"

namespace holdfast {

// Thread-safe.
class MetricsInterceptorFactory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `metrics` must outlive the server.
  MetricsInterceptorFactory(Metrics& metrics, std::shared_ptr<spdlog::logger> logger)
      : metrics_(metrics), logger_(std::move(logger)) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override;

 private:
  Metrics& metrics_;
  const std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_RPC_METRICS_INTERCEPTOR_H_
