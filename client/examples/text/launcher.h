// A training job as processes: starts the workers, kills one on the way if asked to, and starts its successor.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_LAUNCHER_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_LAUNCHER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/examples/text/progress_line.h"
#include "client/examples/text/training_log.h"
#include "common/ids.h"

namespace text {

struct LaunchOptions {
  // The program of a worker and its arguments; "--rank=R" is appended.
  std::string executable;
  std::vector<std::string> worker_arguments;
  // The daemon's worker socket, and the model on it. The model must not be there yet.
  std::string daemon_socket;
  std::string model_name;
  int32_t num_ranks = 4;
  uint64_t num_steps = 0;
  // When this step is committed, the worker of the last rank is killed with SIGKILL, in the midst of the next one; 0:
  // never.
  uint64_t kill_at_step = 0;
};

// A kill that was survived.
struct KillRecord {
  holdfast::Rank rank;
  // Where the daemon said the model stood once the dead worker's lease had ended, and from where its successor on the
  // same rank went on.
  uint64_t committed_step = 0;
  // Before the kill, and after it.
  uint64_t old_epoch = 0;
  uint64_t new_epoch = 0;
};

struct LaunchResult {
  TrainingLog log;
  std::optional<KillRecord> kill;
};

// Runs the job to its end. Errors: FAILED_PRECONDITION the daemon has another number of ranks, or the model already;
// INTERNAL a worker failed, or the kill was not survived: the successor did not go on from the step that the daemon
// had kept, or the daemon's model does not stand at num_steps at the end. No worker outlives the call.
absl::StatusOr<LaunchResult> Launch(const LaunchOptions& options, ProgressLine& progress);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_LAUNCHER_H_
