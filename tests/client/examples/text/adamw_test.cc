#include "client/examples/text/adamw.h"

#include <gtest/gtest.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace text {
namespace {

absl::Span<float> Values(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

// The reference is LibTorch's own AdamW. Both work in float32 and differ in the order of roundings only: a few units in
// the last place (6e-8 of the value) a step, of which 50 add up.
TEST(AdamWTest, Step_FiftyTimes_EqualsTorch) {
  const AdamWOptions options{.learning_rate = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1};
  at::manual_seed(7);
  at::Tensor expected = at::randn({1003}).requires_grad_(true);
  at::Tensor actual = expected.detach().clone();
  at::Tensor exp_avg = at::zeros_like(actual), exp_avg_sq = at::zeros_like(actual);
  torch::optim::AdamW torch_adamw({expected}, torch::optim::AdamWOptions(options.learning_rate)
                                                  .betas({options.beta1, options.beta2})
                                                  .eps(options.epsilon)
                                                  .weight_decay(options.weight_decay));
  double largest = 0;
  for (uint64_t step = 1; step <= 50; ++step) {
    // Of very different sizes, as gradients are.
    const at::Tensor gradient = at::randn({1003}) * at::exp(2 * at::randn({1003}));
    expected.mutable_grad() = gradient.clone();
    torch_adamw.step();
    AdamWStep(options, step,
              {.parameter = Values(actual),
               .gradient = Values(gradient),
               .exp_avg = Values(exp_avg),
               .exp_avg_sq = Values(exp_avg_sq)});
    largest = std::max(largest, (actual - expected.detach()).abs().max().item<double>());
  }
  RecordProperty("largest_difference", absl::StrCat(largest));
  EXPECT_LT(largest, 2e-6);
}

TEST(AdamWTest, Step_ZeroGradient_DecaysOnly) {
  std::vector<float> parameter = {2, -4}, gradient = {0, 0}, exp_avg = {0, 0}, exp_avg_sq = {0, 0};
  AdamWStep({.learning_rate = 0.5, .weight_decay = 0.5}, 1,
            {.parameter = absl::MakeSpan(parameter),
             .gradient = gradient,
             .exp_avg = absl::MakeSpan(exp_avg),
             .exp_avg_sq = absl::MakeSpan(exp_avg_sq)});
  EXPECT_EQ(parameter, (std::vector<float>{1.5, -3}));
}

TEST(AdamWTest, Step_EmptyShard_IsLegal) { AdamWStep({}, 1, {}); }

}  // namespace
}  // namespace text
