// A worker: attaches as a rank, trains to the last step, and goes on after failures.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_WORKER_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_WORKER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/examples/text/data.h"
#include "client/examples/text/model_spec.h"
#include "client/examples/text/report.h"
#include "client/examples/text/training_config.h"
#include "common/ids.h"

namespace text {

// Trains on the daemon at `address` (its worker socket) until the model stands at config.num_steps. Starts from
// wherever the model stands. When another worker dies, it waits for its successor and goes on from the committed step.
absl::Status RunWorker(const TrainingConfig& config, const Sharding& sharding, const TextData& data,
                       const std::string& address, holdfast::Rank rank, absl::FunctionRef<void(const Report&)> report);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_WORKER_H_
