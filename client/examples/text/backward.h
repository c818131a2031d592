// Gradients, one unit at a time.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_BACKWARD_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_BACKWARD_H_

#include <ATen/core/Tensor.h>

#include "client/examples/text/model.h"

namespace text {

struct LossGradient {
  // Mean cross entropy, nats a character.
  float loss = 0;
  // Of the loss by the logits.
  at::Tensor logits;
};

LossGradient CrossEntropyGradient(const at::Tensor& logits, const at::Tensor& targets);

struct UnitGradients {
  // By the unit's input; undefined for "embed", whose input is characters.
  at::Tensor input;
  // By its weights; float32.
  Weights weights;
};

// The gradients of one unit, given its weights, its input in forward, and the gradient by its output. The unit is
// computed again for it: forward keeps one tensor a unit and no autograd graph, so that the gathered weights can be
// released in between (this is FSDP with activation checkpointing). Never writes to `weights`.
UnitGradients BackwardUnit(const ModelConfig& config, size_t unit, const Weights& weights, const at::Tensor& input,
                           const at::Tensor& output_gradient);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_BACKWARD_H_
