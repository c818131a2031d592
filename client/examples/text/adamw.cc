#include "client/examples/text/adamw.h"

#include <cmath>
#include <cstddef>

namespace text {

void AdamWStep(const AdamWOptions& options, uint64_t step, const AdamWShard& shard) {
  const double t = static_cast<double>(step);
  const double correction1 = 1 - std::pow(options.beta1, t);
  const double correction2 = 1 - std::pow(options.beta2, t);
  const float keep = static_cast<float>(1 - options.learning_rate * options.weight_decay);
  const float step_size = static_cast<float>(options.learning_rate / correction1);
  const float root2 = static_cast<float>(std::sqrt(correction2));
  const float epsilon = static_cast<float>(options.epsilon);
  const float beta1 = static_cast<float>(options.beta1), rest1 = static_cast<float>(1 - options.beta1);
  const float beta2 = static_cast<float>(options.beta2), rest2 = static_cast<float>(1 - options.beta2);
  for (size_t i = 0; i < shard.parameter.size(); ++i) {
    const float gradient = shard.gradient[i];
    const float exp_avg = beta1 * shard.exp_avg[i] + rest1 * gradient;
    const float exp_avg_sq = beta2 * shard.exp_avg_sq[i] + rest2 * gradient * gradient;
    shard.exp_avg[i] = exp_avg;
    shard.exp_avg_sq[i] = exp_avg_sq;
    shard.parameter[i] = keep * shard.parameter[i] - step_size * exp_avg / (std::sqrt(exp_avg_sq) / root2 + epsilon);
  }
}

}  // namespace text
