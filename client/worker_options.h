// How a worker attaches, and what it wants to be told.
#ifndef HOLDFAST_CLIENT_WORKER_OPTIONS_H_
#define HOLDFAST_CLIENT_WORKER_OPTIONS_H_

#include <functional>

#include "absl/time/time.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

struct WorkerOptions {
  // How long Attach waits for a rank whose last worker is just ending: the daemon learns of a death a moment after the
  // one who waits for the process. Zero: it does not wait.
  absl::Duration lease_timeout = absl::Seconds(5);
  // Told of what happens to the group: an epoch that ended (with the reason), a daemon that drains. Called from a
  // thread of the client's own; must not call the worker, and must return soon.
  std::function<void(const v1::GroupEvent&)> on_event;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_WORKER_OPTIONS_H_
