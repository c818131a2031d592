// What the daemon counts, as Prometheus series.
#ifndef HOLDFAST_SERVER_METRICS_METRICS_H_
#define HOLDFAST_SERVER_METRICS_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace holdfast {

// All names begin with holdfast_, in base units. Thread-safe.
class Metrics {
 public:
  Metrics();

  // build_info{version,backend}, 1; to be called once.
  void SetBuildInfo(const std::string& version, const std::string& backend);

  // rpcs_total{method,code} and rpc_duration_seconds{method}. `method` is like "holdfast.v1.ParameterService/Gather"
  // and of a closed set.
  void RpcDone(std::string_view method, absl::StatusCode code, absl::Duration took) ABSL_LOCKS_EXCLUDED(mu_);

  // collective_bytes_total{kind} and collective_duration_seconds{kind}; `kind` is of a closed set.
  void CollectiveDone(std::string_view kind, int64_t size_bytes, absl::Duration took);
  // ema_bytes_total and ema_duration_seconds.
  void EmaDone(int64_t size_bytes, absl::Duration took);
  // gather_hits_total or gather_misses_total.
  void Gathered(bool hit);
  // pulled_bytes_total.
  void Pulled(int64_t size_bytes);
  // aborts_total{reason}; `reason` is of a closed set.
  void Aborted(std::string_view reason);
  // draining.
  void SetDraining(bool draining);

  // Series of a model exist from AddModel to DropModel; what is set before or after is ignored.
  void AddModel(std::string_view model) ABSL_LOCKS_EXCLUDED(mu_);
  void DropModel(std::string_view model) ABSL_LOCKS_EXCLUDED(mu_);
  // device_bytes{model,purpose}: of all ranks of this node.
  void SetDeviceBytes(std::string_view model, std::string_view purpose, int64_t size_bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // step{model}, epoch{model} and torn{model}.
  void SetPosition(std::string_view model, uint64_t step, uint64_t epoch, bool torn) ABSL_LOCKS_EXCLUDED(mu_);
  // ema_lag_steps{model,ema}.
  void SetEmaLag(std::string_view model, std::string_view ema, uint64_t steps) ABSL_LOCKS_EXCLUDED(mu_);
  // leases{model,state}: ranks in that state.
  void SetLeases(std::string_view model, std::string_view state, int32_t count) ABSL_LOCKS_EXCLUDED(mu_);

  // What a scrape collects.
  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  using CounterFamily = prometheus::Family<prometheus::Counter>;
  using GaugeFamily = prometheus::Family<prometheus::Gauge>;
  using HistogramFamily = prometheus::Family<prometheus::Histogram>;

  struct MethodSeries {
    prometheus::Histogram* duration = nullptr;
    // By code; made when it is first counted.
    std::map<absl::StatusCode, prometheus::Counter*> by_code;
  };
  struct ModelSeries {
    GaugeFamily* family = nullptr;
    prometheus::Gauge* gauge = nullptr;
  };

  void SetOfModel(std::string_view model, GaugeFamily& family, const prometheus::Labels& labels, double value)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  CounterFamily& rpcs_;
  HistogramFamily& rpc_duration_;
  CounterFamily& collective_bytes_;
  HistogramFamily& collective_duration_;
  CounterFamily& aborts_;
  GaugeFamily& device_bytes_;
  GaugeFamily& step_;
  GaugeFamily& epoch_;
  GaugeFamily& torn_;
  GaugeFamily& ema_lag_;
  GaugeFamily& leases_;
  prometheus::Counter& ema_bytes_;
  prometheus::Histogram& ema_duration_;
  prometheus::Counter& gather_hits_;
  prometheus::Counter& gather_misses_;
  prometheus::Counter& pulled_bytes_;
  prometheus::Gauge& draining_;

  absl::Mutex mu_;
  std::map<std::string, MethodSeries, std::less<>> methods_ ABSL_GUARDED_BY(mu_);
  // What is to be removed with a model.
  std::map<std::string, std::vector<ModelSeries>, std::less<>> models_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_METRICS_H_
