// A small character-level transformer as pure functions over named weights. It is cut into units, so that a trainer
// needs the weights of one unit at a time.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_MODEL_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

namespace text {

// By name. Of any floating-point dtype: they are converted to float32 where they are used.
using Weights = absl::flat_hash_map<std::string, at::Tensor>;

struct ModelConfig {
  int64_t vocabulary_size = 0;
  // The longest text it looks back on, characters.
  int64_t context = 64;
  // Length of the vector that stands for a character.
  int64_t width = 128;
  int64_t num_heads = 4;
  int64_t num_layers = 2;
};

// INVALID_ARGUMENT names the field, its value and what would do.
absl::Status Validate(const ModelConfig& config);

struct WeightInfo {
  std::string name;
  std::vector<int64_t> shape;
  // First values are drawn from a normal distribution.
  double init_mean = 0;
  double init_stddev = 0;
};

// What is computed, gathered and reduced at a time.
struct Unit {
  std::string name;
  std::vector<WeightInfo> weights;
};

// "embed", "layers.0", "layers.1", ..., "head", in forward order.
std::vector<Unit> Units(const ModelConfig& config);

// First values of every weight, float32. The same seed gives the same values.
Weights InitialWeights(const ModelConfig& config, uint64_t seed);

// The output of one unit. `weights` has at least those of the unit. "embed" takes characters, int64 [batch, length],
// with length ≤ context; each other unit takes what the one before it gave. "head" gives logits
// [batch, length, vocabulary_size], all others [batch, length, width].
at::Tensor ForwardUnit(const ModelConfig& config, size_t unit, const Weights& weights, const at::Tensor& input);

// The mean cross entropy, in nats a character, of logits [batch, length, vocabulary_size] against the characters that
// followed, int64 [batch, length]; a 0-dim tensor.
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_MODEL_H_
