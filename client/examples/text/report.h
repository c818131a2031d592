// What a worker process tells its launcher, one line of text each, on its standard output.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_REPORT_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_REPORT_H_

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"

namespace text {

// The worker holds its rank, and the model stands at `step`.
struct AttachReport {
  int32_t rank = 0;
  uint64_t step = 0;
  uint64_t epoch = 0;
};

// A step is committed.
struct StepReport {
  int32_t rank = 0;
  uint64_t step = 0;
  // Mean over this rank's batch, nats a character.
  float loss = 0;
  int64_t num_tokens = 0;
  // From the first try of the step to its commit, and of this the time that the worker waited in calls of holdfast.
  double seconds = 0;
  double daemon_seconds = 0;
};

// A step failed; the worker has rejoined and starts it again.
struct RetryReport {
  int32_t rank = 0;
  // What the model stands at now.
  uint64_t step = 0;
  uint64_t epoch = 0;
  std::string reason;
};

using Report = std::variant<AttachReport, StepReport, RetryReport>;

// No line break at the end, and none within.
std::string FormatReport(const Report& report);
// INVALID_ARGUMENT: not a line that FormatReport makes.
absl::StatusOr<Report> ParseReport(const std::string& line);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_REPORT_H_
