#include "client/examples/text/backward.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

namespace text {
namespace {

// A new leaf over the same memory.
at::Tensor Leaf(const at::Tensor& tensor) { return tensor.detach().requires_grad_(true); }

}  // namespace

LossGradient CrossEntropyGradient(const at::Tensor& logits, const at::Tensor& targets) {
  at::AutoGradMode with_graph(true);
  const at::Tensor leaf = Leaf(logits);
  const at::Tensor loss = CrossEntropy(leaf, targets);
  return {.loss = loss.item<float>(), .logits = torch::autograd::grad({loss}, {leaf})[0]};
}

UnitGradients BackwardUnit(const ModelConfig& config, size_t unit, const Weights& weights, const at::Tensor& input,
                           const at::Tensor& output_gradient) {
  at::AutoGradMode with_graph(true);
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves;
  Weights leaf_weights;
  for (const auto& [name, weight] : weights) {
    names.push_back(name);
    leaves.push_back(Leaf(weight.to(at::kFloat)));
    leaf_weights[name] = leaves.back();
  }
  at::Tensor leaf_input = input;
  if (input.is_floating_point()) {
    leaf_input = Leaf(input);
    leaves.push_back(leaf_input);
  }
  const at::Tensor output = ForwardUnit(config, unit, leaf_weights, leaf_input);
  const std::vector<at::Tensor> gradients = torch::autograd::grad({output}, leaves, {output_gradient});

  UnitGradients result;
  for (size_t i = 0; i < names.size(); ++i) result.weights[names[i]] = gradients[i];
  if (input.is_floating_point()) result.input = gradients.back();
  return result;
}

}  // namespace text
