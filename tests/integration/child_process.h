// A process that a test starts.
#ifndef HOLDFAST_TESTS_INTEGRATION_CHILD_PROCESS_H_
#define HOLDFAST_TESTS_INTEGRATION_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/unique_fd.h"

namespace holdfast {

// How a process ended.
struct ProcessEnd {
  // −1 if a signal ended it.
  int exit_code = -1;
  // 0 if it exited.
  int signal = 0;
};

// Owns the process: it is killed with this object, or when the thread that started it ends. Used by one thread.
class ChildProcess {
 public:
  struct Options {
    std::string executable;
    std::vector<std::string> arguments;
    // File that standard error is written to; empty: where this process's goes.
    std::string error_file;
  };

  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // To be polled: readable when the process has ended.
  int pidfd() const { return pidfd_.get(); }

  // The next line of its standard output, without the line break; nothing if there is none by `deadline`, or the output
  // has ended.
  std::optional<std::string> ReadLine(absl::Time deadline);
  // A line to its standard input. False if it does not read any more.
  bool WriteLine(const std::string& line);

  void Signal(int signal);
  // How it ended; nothing if it lives still at `deadline`.
  std::optional<ProcessEnd> Wait(absl::Time deadline);
  // SIGKILL, and waits until it is gone.
  void Kill();

 private:
  ChildProcess(pid_t pid, UniqueFd input, UniqueFd output);

  const pid_t pid_;
  UniqueFd pidfd_;
  UniqueFd input_;
  UniqueFd output_;
  // Read, and not yet returned.
  std::string pending_;
  std::optional<ProcessEnd> end_;
};

// Waits until `fd` can be read, at most until `deadline`; true if it can.
bool AwaitReadable(int fd, absl::Time deadline);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_CHILD_PROCESS_H_
