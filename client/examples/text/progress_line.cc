#include "client/examples/text/progress_line.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"

namespace text {
namespace {

constexpr double kRunningMeanKeeps = 0.9;

}  // namespace

ProgressLine::ProgressLine(std::FILE* out, uint64_t num_steps)
    : out_(out), num_steps_(num_steps), is_terminal_(::isatty(::fileno(out)) == 1) {}

ProgressLine::~ProgressLine() {
  if (open_) std::fputc('\n', out_);
  std::fflush(out_);
}

void ProgressLine::Show(const StepSummary& summary) {
  const double keep = first_ ? 0 : kRunningMeanKeeps;
  first_ = false;
  tokens_per_second_ = keep * tokens_per_second_ + (1 - keep) * summary.tokens_per_second;
  daemon_share_ = keep * daemon_share_ + (1 - keep) * summary.daemon_share;
  const uint64_t every = is_terminal_ ? 1 : std::max<uint64_t>(1, num_steps_ / 10);
  if (summary.step % every != 0 && summary.step != num_steps_ && summary.step != 1) return;
  Clear();
  absl::FPrintF(out_, "step %4d of %d   loss %.3f   %6.0f tokens/s   %2.0f %% of the time in holdfast", summary.step,
                num_steps_, summary.mean_loss, tokens_per_second_, 100 * daemon_share_);
  if (!is_terminal_) std::fputc('\n', out_);
  open_ = is_terminal_;
  std::fflush(out_);
}

void ProgressLine::Note(const std::string& text) {
  Clear();
  absl::FPrintF(out_, "%s\n", text);
  std::fflush(out_);
}

void ProgressLine::Clear() {
  if (open_) std::fputs("\r\x1b[K", out_);
  open_ = false;
}

}  // namespace text
