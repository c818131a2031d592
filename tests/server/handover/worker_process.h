// Runs memory_worker.
#ifndef HOLDFAST_TESTS_SERVER_HANDOVER_WORKER_PROCESS_H_
#define HOLDFAST_TESTS_SERVER_HANDOVER_WORKER_PROCESS_H_

#include <sys/types.h>

#include <string>

#include "common/unique_fd.h"

namespace holdfast {

// Killed and reaped with the object. The worker's children see the end of their input then, and exit.
class WorkerProcess {
 public:
  WorkerProcess(const std::string& mode, const std::string& path, const std::string& token, size_t count);
  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  // The next line that it prints, without its end; empty when it has exited.
  std::string ReadLine();
  // SIGKILL; returns when it is dead.
  void Kill();
  // Ends its input; returns when it has exited by itself.
  void Finish();

 private:
  void Reap();

  pid_t pid_ = -1;
  UniqueFd input_;
  UniqueFd output_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_HANDOVER_WORKER_PROCESS_H_
