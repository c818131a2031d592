#include "server/rpc/metrics_interceptor.h"

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/logging/log_event.h"

namespace holdfast {
namespace {

using grpc::experimental::InterceptionHookPoints;

// Of one RPC; gRPC calls it from one thread at a time, and destroys it when the RPC is over.
class MetricsInterceptor final : public grpc::experimental::Interceptor {
 public:
  MetricsInterceptor(Metrics& metrics, spdlog::logger& logger, std::string_view method)
      : metrics_(metrics), logger_(logger), method_(method), start_(absl::Now()) {}

  // A call whose caller has left may end with no status sent.
  ~MetricsInterceptor() override {
    if (!counted_) Count(absl::StatusCode::kCancelled);
  }

  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    // Before it is sent: whoever has the answer finds the call counted.
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      Count(static_cast<absl::StatusCode>(batch->GetSendStatus().error_code()));
    }
    batch->Proceed();
  }

 private:
  void Count(absl::StatusCode code) {
    counted_ = true;
    const absl::Duration took = absl::Now() - start_;
    metrics_.RpcDone(method_, code, took);
    if (!logger_.should_log(spdlog::level::debug)) return;
    LogEvent(logger_, spdlog::level::debug, "rpc",
             {{"method", method_},
              {"code", absl::StatusCodeToString(code)},
              {"microseconds", took / absl::Microseconds(1)}});
  }

  Metrics& metrics_;
  spdlog::logger& logger_;
  const std::string method_;
  const absl::Time start_;
  bool counted_ = false;
};

}  // namespace

grpc::experimental::Interceptor* MetricsInterceptorFactory::CreateServerInterceptor(
    grpc::experimental::ServerRpcInfo* info) {
  std::string_view method = info->method();
  if (method.starts_with('/')) method.remove_prefix(1);
  return new MetricsInterceptor(metrics_, *logger_, method);
}

}  // namespace holdfast
