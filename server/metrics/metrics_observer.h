// Turns what the core tells into metrics and log lines.
#ifndef HOLDFAST_SERVER_METRICS_METRICS_OBSERVER_H_
#define HOLDFAST_SERVER_METRICS_METRICS_OBSERVER_H_

#include <spdlog/logger.h>

#include <memory>
#include <utility>

#include "server/core/observer.h"
#include "server/metrics/metrics.h"

namespace holdfast {

// Thread-safe.
class MetricsObserver final : public Observer {
 public:
  // `metrics` must outlive it.
  MetricsObserver(Metrics& metrics, std::shared_ptr<spdlog::logger> logger)
      : metrics_(metrics), logger_(std::move(logger)) {}

  void ModelRegistered(const ModelLayout& layout, int32_t num_ranks) override;
  void ModelDropped(std::string_view model) override;
  void PositionChanged(std::string_view model, const ModelPosition& position) override;
  void LeasesChanged(std::string_view model, int32_t free, int32_t held, int32_t mapped) override;
  void LeaseTaken(std::string_view model, Rank rank, int32_t pid) override;
  void LeaseEnded(std::string_view model, Rank rank, int32_t pid, std::string_view reason) override;
  void EpochEnded(std::string_view model, Epoch ended, AbortCause cause, std::string_view reason) override;
  void Gathered(bool hit) override;
  void CollectiveDone(CollectiveKind kind, int64_t size_bytes, absl::Duration took) override;
  void EmaDone(int64_t size_bytes, absl::Duration took) override;
  void Pulled(int64_t size_bytes) override;

 private:
  Metrics& metrics_;
  const std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_METRICS_METRICS_OBSERVER_H_
