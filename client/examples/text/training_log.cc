#include "client/examples/text/training_log.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace text {
namespace {

constexpr double kLargestPartLeft = 0.7;

}  // namespace

bool TrainingLog::Add(const StepReport& report) {
  std::map<int32_t, StepReport>& ranks = steps_[report.step];
  ranks[report.rank] = report;
  return ranks.size() == static_cast<size_t>(num_ranks_);
}

StepSummary TrainingLog::Summary(uint64_t step) const {
  const std::map<int32_t, StepReport>& ranks = steps_.at(step);
  StepSummary summary{.step = step};
  double seconds = 0, daemon_seconds = 0, longest = 0, tokens = 0;
  for (const auto& [rank, report] : ranks) {
    summary.mean_loss += report.loss / static_cast<double>(ranks.size());
    seconds += report.seconds;
    daemon_seconds += report.daemon_seconds;
    longest = std::max(longest, report.seconds);
    tokens += static_cast<double>(report.num_tokens);
  }
  summary.tokens_per_second = longest > 0 ? tokens / longest : 0;
  summary.daemon_share = seconds > 0 ? daemon_seconds / seconds : 0;
  return summary;
}

std::vector<LossPoint> TrainingLog::Losses() const {
  std::vector<LossPoint> losses;
  for (const auto& [step, ranks] : steps_) losses.push_back({.step = step, .loss = Summary(step).mean_loss});
  return losses;
}

absl::Status CheckLossFell(const std::vector<LossPoint>& losses) {
  if (losses.empty()) return absl::FailedPreconditionError("no step was made");
  const double first = losses.front().loss;
  const size_t num_last = std::max<size_t>(1, losses.size() / 10);
  double last = 0;
  for (size_t i = losses.size() - num_last; i < losses.size(); ++i)
    last += losses[i].loss / static_cast<double>(num_last);
  // Not `>`: a loss that is not a number has not fallen.
  if (last < kLargestPartLeft * first) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("the loss did not fall: it began at %.3f, and the mean of the last %d steps is %.3f; expected "
                      "below %.3f",
                      first, num_last, last, kLargestPartLeft * first));
}

}  // namespace text
