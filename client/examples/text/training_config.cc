#include "client/examples/text/training_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"

namespace text {

absl::Status Validate(const TrainingConfig& config) {
  if (absl::Status status = Validate(config.model); !status.ok()) return status;
  if (config.num_ranks < 1)
    return absl::InvalidArgumentError(absl::StrCat("ranks is ", config.num_ranks, "; it must be at least 1"));
  if (config.batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch_size is ", config.batch_size, "; it must be at least 1"));
  }
  if (config.num_steps < 1) return absl::InvalidArgumentError("steps is 0; it must be at least 1");
  if (!(config.adamw.learning_rate > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("learning_rate is ", config.adamw.learning_rate, "; it must be above 0"));
  }
  if (!(config.ema_decay >= 0 && config.ema_decay < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ema_decay is ", config.ema_decay, "; it must be 0 or more, and below 1"));
  }
  return absl::OkStatus();
}

AdamWOptions AdamWAt(const TrainingConfig& config, uint64_t step) {
  const double done = static_cast<double>(step), warmup = static_cast<double>(config.warmup_steps);
  const double rest = std::max(1.0, static_cast<double>(config.num_steps) - warmup);
  double factor = done / std::max(1.0, warmup);
  if (done > warmup) factor = 0.55 + 0.45 * std::cos(std::numbers::pi * std::min(1.0, (done - warmup) / rest));
  AdamWOptions options = config.adamw;
  options.learning_rate *= factor;
  return options;
}

}  // namespace text
