// A small real training: a network of two units learns a function, with SGD and momentum, and an EMA copy.
#ifndef HOLDFAST_TESTS_INTEGRATION_REGRESSION_TRAINING_H_
#define HOLDFAST_TESTS_INTEGRATION_REGRESSION_TRAINING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/worker.h"
#include "holdfast/v1/model.pb.h"

namespace holdfast {

using TensorsByName = std::map<std::string, at::Tensor>;

// y = gain · (W2 · tanh(W1 · x + b1) + b2); `gain` is frozen, W1 and b1 are the unit "first", the rest is "second". No
// size is a multiple of 4. The EMA copy is "ema", decay 0.9; the optimizer state is "momentum".
v1::ModelSpec RegressionSpec(const std::string& name, const v1::Mesh& mesh);

// How the data are shared out: each rank has its own batch, another one at each step and micro-batch.
struct RegressionRun {
  int32_t world = 1;
  int32_t micro_batches = 1;
  uint64_t num_steps = 20;
};

// A worker's part. `committed` is called after every step.
absl::Status TrainRegression(Worker& worker, const RegressionRun& run,
                             const std::function<absl::Status(uint64_t step)>& committed);

// The same training in one process, with no shards and no daemon.
struct RegressionHistory {
  // After each step, [0] being the initial values: the parameters, and the EMA's copies of the trainable ones.
  std::vector<TensorsByName> values;
  std::vector<TensorsByName> ema;
  // The mean over the ranks before each step.
  std::vector<double> losses;
  // Of any rank at any step, by absolute value.
  double largest_gradient = 0;
};
RegressionHistory TrainUnsharded(const RegressionRun& run);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_REGRESSION_TRAINING_H_
