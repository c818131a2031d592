// The same training without holdfast: one process, whole weights, plain autograd. What sharded training is compared to.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_SOLO_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_SOLO_H_

#include "absl/functional/function_ref.h"
#include "client/examples/text/data.h"
#include "client/examples/text/model.h"
#include "client/examples/text/report.h"
#include "client/examples/text/training_config.h"

namespace text {

// Float32, after the last step.
struct SoloResult {
  Weights weights;
  Weights ema;
};

// Computes each rank's batch in turn, in rank order, and takes the mean of the gradients. `report` is called for every
// rank and step, in order, with the time since the step began.
SoloResult TrainSolo(const TrainingConfig& config, const TextData& data,
                     absl::FunctionRef<void(const StepReport&)> report);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_SOLO_H_
