// What Pull asks for and what it brings.
#ifndef HOLDFAST_CLIENT_MODEL_TENSOR_H_
#define HOLDFAST_CLIENT_MODEL_TENSOR_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "common/dtype.h"
#include "common/ids.h"

namespace holdfast {

struct PullOptions {
  // Names, or globs ('*' and '?'), of parameters and buffers; empty means all.
  std::vector<std::string> names;
  // An EMA's name, for its copies of the trainable parameters; empty for the model itself.
  std::string ema;
  // Converts floating-point tensors of 2 bytes or more; kUnspecified leaves them as they are kept.
  DType dtype = DType::kUnspecified;
};

// A tensor of this process's own memory, with the shape that was registered. fp8 comes as bytes (at::kByte), as
// LibTorch 1.13 has no such types; `dtype` tells them apart.
struct ModelTensor {
  std::string name;
  // The committed step it is of; for an EMA, the step the copy was moved to.
  Step step;
  DType dtype = DType::kUnspecified;
  at::Tensor tensor;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_MODEL_TENSOR_H_
