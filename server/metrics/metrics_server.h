// The HTTP port that Prometheus scrapes.
#ifndef HOLDFAST_SERVER_METRICS_METRICS_SERVER_H_
#define HOLDFAST_SERVER_METRICS_METRICS_SERVER_H_

#include <prometheus/exposer.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/metrics/metrics.h"

namespace holdfast {

// Serves GET /metrics, and nothing else, from a thread of its own until it is destroyed. Thread-safe.
class MetricsServer {
 public:
  // `address` is "ip:port", with brackets around an IPv6 address; port 0 takes a free one. UNAVAILABLE says why it
  // can't listen there, as that the port is in use. A scrape after the end of `metrics` shows none of them.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address, const Metrics& metrics);

  // With the port that was taken.
  const std::string& address() const { return address_; }

 private:
  MetricsServer(std::unique_ptr<prometheus::Exposer> exposer, std::string address)
      : exposer_(std::move(exposer)), address_(std::move(address)) {}

  const std::unique_ptr<prometheus::Exposer> exposer_;
  const std::string address_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_METRICS_SERVER_H_
