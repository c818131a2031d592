// The trainer's own optimizer, on flat shards.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_ADAMW_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_ADAMW_H_

#include <cstdint>

#include "absl/types/span.h"

namespace text {

struct AdamWOptions {
  double learning_rate = 5e-3;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
};

// Equally long parts of the flat parameters; they do not overlap.
struct AdamWShard {
  absl::Span<float> parameter;
  absl::Span<const float> gradient;
  absl::Span<float> exp_avg;
  absl::Span<float> exp_avg_sq;
};

// One step of torch.optim.AdamW (decoupled weight decay, no amsgrad), in place, in one pass over memory. `step` counts
// from 1; at step 1 both averages are zeros.
void AdamWStep(const AdamWOptions& options, uint64_t step, const AdamWShard& shard);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_ADAMW_H_
