#include "server/metrics/metrics.h"

#include <algorithm>

namespace holdfast {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Histogram;

// From a call that only looks something up to one that waits for its peers.
const Histogram::BucketBoundaries& DurationBuckets() {
  static const auto& buckets = *new Histogram::BucketBoundaries{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
  return buckets;
}

}  // namespace

Metrics::Metrics()
    : rpcs_(BuildCounter()
                .Name("holdfast_rpcs_total")
                .Help("Calls that have ended, by method and status code.")
                .Register(*registry_)),
      rpc_duration_(BuildHistogram()
                        .Name("holdfast_rpc_duration_seconds")
                        .Help("Time from a call's arrival to its status; a stream's is its whole life.")
                        .Register(*registry_)),
      collective_bytes_(BuildCounter()
                            .Name("holdfast_collective_bytes_total")
                            .Help("Bytes that collectives have written to the ranks of this node, by kind.")
                            .Register(*registry_)),
      collective_duration_(BuildHistogram()
                               .Name("holdfast_collective_duration_seconds")
                               .Help("Time that a collective took once all ranks were there, by kind.")
                               .Register(*registry_)),
      aborts_(
          BuildCounter().Name("holdfast_aborts_total").Help("Epochs that have ended, by reason.").Register(*registry_)),
      device_bytes_(BuildGauge()
                        .Name("holdfast_device_bytes")
                        .Help("Memory of a model on the ranks of this node, by purpose.")
                        .Register(*registry_)),
      step_(BuildGauge().Name("holdfast_step").Help("Last committed step of a model.").Register(*registry_)),
      epoch_(BuildGauge().Name("holdfast_epoch").Help("Epoch of a model's peer group.").Register(*registry_)),
      torn_(BuildGauge()
                .Name("holdfast_torn")
                .Help("1 if a worker died in an unprotected update and the parameters must be set again.")
                .Register(*registry_)),
      ema_lag_(BuildGauge()
                   .Name("holdfast_ema_lag_steps")
                   .Help("Steps by which an EMA copy is behind its model.")
                   .Register(*registry_)),
      leases_(BuildGauge()
                  .Name("holdfast_leases")
                  .Help("Ranks of a model by the state of their lease.")
                  .Register(*registry_)),
      ema_bytes_(BuildCounter()
                     .Name("holdfast_ema_bytes_total")
                     .Help("Bytes of EMA shards that were updated.")
                     .Register(*registry_)
                     .Add({})),
      ema_duration_(BuildHistogram()
                        .Name("holdfast_ema_duration_seconds")
                        .Help("Time that the EMA update of one step took.")
                        .Register(*registry_)
                        .Add({}, DurationBuckets())),
      gather_hits_(BuildCounter()
                       .Name("holdfast_gather_hits_total")
                       .Help("Gathers that were answered with what was there already.")
                       .Register(*registry_)
                       .Add({})),
      gather_misses_(BuildCounter()
                         .Name("holdfast_gather_misses_total")
                         .Help("Gathers that moved bytes.")
                         .Register(*registry_)
                         .Add({})),
      pulled_bytes_(BuildCounter()
                        .Name("holdfast_pulled_bytes_total")
                        .Help("Bytes of tensors that were staged for Pull.")
                        .Register(*registry_)
                        .Add({})),
      draining_(BuildGauge()
                    .Name("holdfast_draining")
                    .Help("1 while the daemon drains: it gives no new lease and ends soon.")
                    .Register(*registry_)
                    .Add({})) {}

void Metrics::SetBuildInfo(const std::string& version, const std::string& backend) {
  BuildGauge()
      .Name("holdfast_build_info")
      .Help("1, with the version of holdfastd and its backend as labels.")
      .Register(*registry_)
      .Add({{"version", version}, {"backend", backend}})
      .Set(1);
}

void Metrics::RpcDone(std::string_view method, absl::StatusCode code, absl::Duration took) {
  prometheus::Counter* counter = nullptr;
  prometheus::Histogram* duration = nullptr;
  {
    absl::MutexLock lock(&mu_);
    // Looking a series up in its family would build and hash its labels at every call.
    auto found = methods_.find(method);
    if (found == methods_.end()) {
      found = methods_.emplace(method, MethodSeries{}).first;
      found->second.duration = &rpc_duration_.Add({{"method", found->first}}, DurationBuckets());
    }
    prometheus::Counter*& by_code = found->second.by_code[code];
    if (by_code == nullptr) by_code = &rpcs_.Add({{"method", found->first}, {"code", absl::StatusCodeToString(code)}});
    counter = by_code;
    duration = found->second.duration;
  }
  counter->Increment();
  duration->Observe(absl::ToDoubleSeconds(took));
}

void Metrics::CollectiveDone(std::string_view kind, int64_t size_bytes, absl::Duration took) {
  const prometheus::Labels labels = {{"kind", std::string(kind)}};
  collective_bytes_.Add(labels).Increment(static_cast<double>(size_bytes));
  collective_duration_.Add(labels, DurationBuckets()).Observe(absl::ToDoubleSeconds(took));
}

void Metrics::EmaDone(int64_t size_bytes, absl::Duration took) {
  ema_bytes_.Increment(static_cast<double>(size_bytes));
  ema_duration_.Observe(absl::ToDoubleSeconds(took));
}

void Metrics::Gathered(bool hit) { (hit ? gather_hits_ : gather_misses_).Increment(); }

void Metrics::Pulled(int64_t size_bytes) { pulled_bytes_.Increment(static_cast<double>(size_bytes)); }

void Metrics::Aborted(std::string_view reason) { aborts_.Add({{"reason", std::string(reason)}}).Increment(); }

void Metrics::SetDraining(bool draining) { draining_.Set(draining ? 1 : 0); }

void Metrics::AddModel(std::string_view model) {
  absl::MutexLock lock(&mu_);
  models_.emplace(model, std::vector<ModelSeries>());
}

void Metrics::DropModel(std::string_view model) {
  absl::MutexLock lock(&mu_);
  const auto series = models_.find(model);
  if (series == models_.end()) return;
  for (const ModelSeries& one : series->second) one.family->Remove(one.gauge);
  models_.erase(series);
}

void Metrics::SetDeviceBytes(std::string_view model, std::string_view purpose, int64_t size_bytes) {
  SetOfModel(model, device_bytes_, {{"purpose", std::string(purpose)}}, static_cast<double>(size_bytes));
}

void Metrics::SetPosition(std::string_view model, uint64_t step, uint64_t epoch, bool torn) {
  SetOfModel(model, step_, {}, static_cast<double>(step));
  SetOfModel(model, epoch_, {}, static_cast<double>(epoch));
  SetOfModel(model, torn_, {}, torn ? 1 : 0);
}

void Metrics::SetEmaLag(std::string_view model, std::string_view ema, uint64_t steps) {
  SetOfModel(model, ema_lag_, {{"ema", std::string(ema)}}, static_cast<double>(steps));
}

void Metrics::SetLeases(std::string_view model, std::string_view state, int32_t count) {
  SetOfModel(model, leases_, {{"state", std::string(state)}}, count);
}

void Metrics::SetOfModel(std::string_view model, GaugeFamily& family, const prometheus::Labels& labels, double value) {
  prometheus::Labels all = labels;
  all.emplace("model", std::string(model));
  absl::MutexLock lock(&mu_);
  const auto series = models_.find(model);
  if (series == models_.end()) return;
  prometheus::Gauge& gauge = family.Add(all);
  gauge.Set(value);
  const auto is_this = [&gauge](const ModelSeries& one) { return one.gauge == &gauge; };
  if (std::none_of(series->second.begin(), series->second.end(), is_this)) {
    series->second.push_back({.family = &family, .gauge = &gauge});
  }
}

}  // namespace holdfast
