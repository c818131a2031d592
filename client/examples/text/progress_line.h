// One line that shows how far training is.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_PROGRESS_LINE_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_PROGRESS_LINE_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "client/examples/text/training_log.h"

namespace text {

// On a terminal the line is written over itself; elsewhere one is written each tenth of the way. Used by one thread.
class ProgressLine {
 public:
  // `out` must outlive it.
  ProgressLine(std::FILE* out, uint64_t num_steps);
  // Ends the line.
  ~ProgressLine();

  // Rates are shown as a running mean.
  void Show(const StepSummary& summary);
  // A line of its own for something that happened.
  void Note(const std::string& text);

 private:
  void Clear();

  std::FILE* out_;
  const uint64_t num_steps_;
  const bool is_terminal_;
  // There is an unended line on the terminal.
  bool open_ = false;
  bool first_ = true;
  double tokens_per_second_ = 0;
  double daemon_share_ = 0;
};

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_PROGRESS_LINE_H_
