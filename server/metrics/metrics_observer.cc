#include "server/metrics/metrics_observer.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/logging/log_event.h"

namespace holdfast {
namespace {

std::string_view CauseLabel(AbortCause cause) {
  switch (cause) {
    case AbortCause::kLeaseLost:
      return "lease_lost";
    case AbortCause::kDesync:
      return "desync";
    case AbortCause::kRejoin:
      return "rejoin";
    case AbortCause::kDropped:
      return "dropped";
    case AbortCause::kDeviceError:
      return "device_error";
  }
  return "unknown";
}

// MEMORY_PURPOSE_GATHER_SLOTS → gather_slots.
std::string PurposeLabel(v1::MemoryPurpose purpose) {
  const std::string name = v1::MemoryPurpose_Name(purpose);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "MEMORY_PURPOSE_"));
}

}  // namespace

void MetricsObserver::ModelRegistered(const ModelLayout& layout, int32_t num_ranks) {
  metrics_.AddModel(layout.name());
  metrics_.AddModel(layout.name());
  for (const v1::MemoryUse& use : layout.Memory()) {
    metrics_.SetDeviceBytes(layout.name(), PurposeLabel(use.purpose()),
                            static_cast<int64_t>(use.size_bytes()) * num_ranks);
  }
  LogEvent(*logger_, spdlog::level::info, "model registered",
           {{"model", layout.name()},
            {"units", layout.units().size()},
            {"elements", layout.num_elements()},
            {"bytes", layout.BytesPerRank() * num_ranks},
            {"fingerprint", FingerprintText(layout.fingerprint())}});
}

void MetricsObserver::ModelDropped(std::string_view model) {
  metrics_.DropModel(model);
  LogEvent(*logger_, spdlog::level::info, "model dropped", {{"model", model}});
}

void MetricsObserver::PositionChanged(std::string_view model, const ModelPosition& position) {
  metrics_.SetPosition(model, position.step.value(), position.epoch.value(), position.torn);
  for (const EmaPosition& ema : position.emas) {
    metrics_.SetEmaLag(model, ema.name, position.step.value() - ema.step.value());
  }
}

void MetricsObserver::LeasesChanged(std::string_view model, int32_t free, int32_t held, int32_t mapped) {
  metrics_.SetLeases(model, "free", free);
  metrics_.SetLeases(model, "held", held);
  metrics_.SetLeases(model, "mapped", mapped);
}

void MetricsObserver::LeaseTaken(std::string_view model, Rank rank, int32_t pid) {
  LogEvent(*logger_, spdlog::level::info, "lease taken", {{"model", model}, {"rank", rank.value()}, {"pid", pid}});
}

void MetricsObserver::LeaseEnded(std::string_view model, Rank rank, int32_t pid, std::string_view reason) {
  LogEvent(*logger_, spdlog::level::warn, "lease ended",
           {{"model", model}, {"rank", rank.value()}, {"pid", pid}, {"reason", reason}});
}

void MetricsObserver::EpochEnded(std::string_view model, Epoch ended, AbortCause cause, std::string_view reason) {
  metrics_.Aborted(CauseLabel(cause));
  LogEvent(*logger_, spdlog::level::warn, "epoch ended",
           {{"model", model}, {"epoch", ended.value()}, {"cause", CauseLabel(cause)}, {"reason", reason}});
}

void MetricsObserver::Gathered(bool hit) { metrics_.Gathered(hit); }

void MetricsObserver::CollectiveDone(CollectiveKind kind, int64_t size_bytes, absl::Duration took) {
  metrics_.CollectiveDone(kind == CollectiveKind::kAllGather ? "all_gather" : "reduce_scatter", size_bytes, took);
}

void MetricsObserver::EmaDone(int64_t size_bytes, absl::Duration took) { metrics_.EmaDone(size_bytes, took); }

void MetricsObserver::Pulled(int64_t size_bytes) { metrics_.Pulled(size_bytes); }

}  // namespace holdfast
