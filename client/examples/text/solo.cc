#include "client/examples/text/solo.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace text {
namespace {

absl::Span<float> Values(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

// What training keeps of one weight: all of the same shape, float32.
struct Slot {
  std::string name;
  at::Tensor weight;
  at::Tensor gradient;
  at::Tensor exp_avg;
  at::Tensor exp_avg_sq;
  at::Tensor ema;
};

// Adds the gradients of one batch to the slots; returns its loss.
float AddGradients(const TrainingConfig& config, const Batch& batch, std::vector<Slot>& slots) {
  Weights weights;
  std::vector<at::Tensor> leaves;
  for (const Slot& slot : slots) {
    // Rounded as a gather rounds; the gradient of the rounded weight, in float32, is what the optimizer takes.
    leaves.push_back(slot.weight.to(config.param_dtype).to(at::kFloat).detach().requires_grad_(true));
    weights[slot.name] = leaves.back();
  }
  at::Tensor output = batch.inputs;
  for (size_t unit = 0; unit < Units(config.model).size(); ++unit) {
    output = ForwardUnit(config.model, unit, weights, output);
  }
  const at::Tensor loss = CrossEntropy(output, batch.targets);
  const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, leaves);
  for (size_t i = 0; i < slots.size(); ++i) slots[i].gradient += gradients[i];
  return loss.item<float>();
}

}  // namespace

SoloResult TrainSolo(const TrainingConfig& config, const TextData& data,
                     absl::FunctionRef<void(const StepReport&)> report) {
  std::vector<Slot> slots;
  for (const auto& [name, weight] : InitialWeights(config.model, config.seed)) {
    slots.push_back({.name = name,
                     .weight = weight,
                     .gradient = at::zeros_like(weight),
                     .exp_avg = at::zeros_like(weight),
                     .exp_avg_sq = at::zeros_like(weight),
                     .ema = weight.clone()});
  }
  for (uint64_t step = 1; step <= config.num_steps; ++step) {
    for (Slot& slot : slots) slot.gradient.zero_();
    const absl::Time start = absl::Now();
    for (int32_t rank = 0; rank < config.num_ranks; ++rank) {
      const Batch batch = data.Draw(config.seed, step, rank, config.batch_size, config.model.context);
      const float loss = AddGradients(config, batch, slots);
      report({.rank = rank,
              .step = step,
              .loss = loss,
              .num_tokens = batch.inputs.numel(),
              .seconds = absl::ToDoubleSeconds(absl::Now() - start)});
    }
    const AdamWOptions adamw = AdamWAt(config, step);
    for (Slot& slot : slots) {
      slot.gradient /= config.num_ranks;
      AdamWStep(adamw, step,
                {.parameter = Values(slot.weight),
                 .gradient = Values(slot.gradient),
                 .exp_avg = Values(slot.exp_avg),
                 .exp_avg_sq = Values(slot.exp_avg_sq)});
      slot.ema.mul_(config.ema_decay).add_(slot.weight, 1 - config.ema_decay);
    }
  }
  SoloResult result;
  for (const Slot& slot : slots) {
    result.weights[slot.name] = slot.weight;
    result.ema[slot.name] = slot.ema;
  }
  return result;
}

}  // namespace text
