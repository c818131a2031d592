// A worker as a child process.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_WORKER_PROCESS_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_WORKER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/unique_fd.h"

namespace text {

// Owns the process: it does not outlive this object. Used by one thread.
class WorkerProcess {
 public:
  // Runs `executable`; its standard output comes here, its standard error goes where ours goes.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(const std::string& executable,
                                                              const std::vector<std::string>& arguments);
  // Kills it if it runs still.
  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  // To be polled for input; −1 once the output has ended.
  int output() const { return output_.get(); }
  // Waits until there is some output, and returns the whole lines of it, without line breaks. Once the output has
  // ended, output() is −1.
  std::vector<std::string> ReadLines();

  // SIGKILL, and waits until the process is gone. What it had written before can still be read.
  void Kill();
  // Waits until the process is gone. INTERNAL, with how it ended, unless it exited with 0.
  absl::Status Wait();

 private:
  WorkerProcess(pid_t pid, holdfast::UniqueFd output);

  pid_t pid_;
  holdfast::UniqueFd output_;
  // The beginning of a line.
  std::string rest_;
  bool gone_ = false;
};

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_WORKER_PROCESS_H_
