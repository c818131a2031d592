// What the workers have reported, step by step.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINING_LOG_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINING_LOG_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "client/examples/text/loss_plot.h"
#include "client/examples/text/report.h"

namespace text {

// One step, over the ranks.
struct StepSummary {
  uint64_t step = 0;
  double mean_loss = 0;
  double tokens_per_second = 0;
  // The part of their time that ranks waited in calls of holdfast, 0 to 1.
  double daemon_share = 0;
};

class TrainingLog {
 public:
  explicit TrainingLog(int32_t num_ranks) : num_ranks_(num_ranks) {}

  // True if all ranks have now reported the step.
  bool Add(const StepReport& report);

  // By step, then by rank. A rank that died between a commit and its report is missing in that step.
  const std::map<uint64_t, std::map<int32_t, StepReport>>& steps() const { return steps_; }
  // `step` must have been reported by one rank at least.
  StepSummary Summary(uint64_t step) const;
  // The mean over ranks of every step.
  std::vector<LossPoint> Losses() const;

 private:
  int32_t num_ranks_;
  std::map<uint64_t, std::map<int32_t, StepReport>> steps_;
};

// FAILED_PRECONDITION, with the figures, unless the mean of the last tenth of the losses is below 70 % of the first.
absl::Status CheckLossFell(const std::vector<LossPoint>& losses);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINING_LOG_H_
