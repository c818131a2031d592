// What is trained, and how. Everything that decides the numbers is here: the same config gives the same training.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINING_CONFIG_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINING_CONFIG_H_

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "absl/status/status.h"
#include "client/examples/text/adamw.h"
#include "client/examples/text/model.h"

namespace text {

struct TrainingConfig {
  ModelConfig model;
  AdamWOptions adamw;
  int32_t num_ranks = 4;
  // Pieces of text a rank and step, of model.context characters each.
  int64_t batch_size = 8;
  uint64_t num_steps = 400;
  // The learning rate rises to adamw.learning_rate over so many steps, then falls along a cosine to a tenth of it.
  uint64_t warmup_steps = 20;
  // What forward and backward see; the optimizer works on float32.
  at::ScalarType param_dtype = at::kBFloat16;
  double ema_decay = 0.98;
  // Of the first weights and of the batches.
  uint64_t seed = 1;
};

// INVALID_ARGUMENT names the field, its value and what would do.
absl::Status Validate(const TrainingConfig& config);

// config.adamw with the learning rate of `step`, which counts from 1.
AdamWOptions AdamWAt(const TrainingConfig& config, uint64_t step);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINING_CONFIG_H_
