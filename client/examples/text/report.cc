#include "client/examples/text/report.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace text {
namespace {

struct Formatter {
  std::string operator()(const AttachReport& r) const {
    return absl::StrFormat("attached %d %d %d", r.rank, r.step, r.epoch);
  }
  // Nine digits bring every float back.
  std::string operator()(const StepReport& r) const {
    return absl::StrFormat("step %d %d %.9g %d %.6f %.6f", r.rank, r.step, r.loss, r.num_tokens, r.seconds,
                           r.daemon_seconds);
  }
  std::string operator()(const RetryReport& r) const {
    return absl::StrFormat("retry %d %d %d %s", r.rank, r.step, r.epoch, absl::StrReplaceAll(r.reason, {{"\n", " "}}));
  }
};

}  // namespace

std::string FormatReport(const Report& report) { return std::visit(Formatter(), report); }

absl::StatusOr<Report> ParseReport(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words[0] == "attached" && words.size() == 4) {
    AttachReport r;
    if (absl::SimpleAtoi(words[1], &r.rank) && absl::SimpleAtoi(words[2], &r.step) &&
        absl::SimpleAtoi(words[3], &r.epoch)) {
      return r;
    }
  } else if (words[0] == "step" && words.size() == 7) {
    StepReport r;
    if (absl::SimpleAtoi(words[1], &r.rank) && absl::SimpleAtoi(words[2], &r.step) &&
        absl::SimpleAtof(words[3], &r.loss) && absl::SimpleAtoi(words[4], &r.num_tokens) &&
        absl::SimpleAtod(words[5], &r.seconds) && absl::SimpleAtod(words[6], &r.daemon_seconds)) {
      return r;
    }
  } else if (words[0] == "retry" && words.size() >= 4) {
    RetryReport r;
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(' ', 4));
    if (absl::SimpleAtoi(fields[1], &r.rank) && absl::SimpleAtoi(fields[2], &r.step) &&
        absl::SimpleAtoi(fields[3], &r.epoch)) {
      if (fields.size() == 5) r.reason = fields[4];
      return r;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("not a report: '", line, "'"));
}

}  // namespace text
