// Text written by the model.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_SAMPLE_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_SAMPLE_H_

#include <cstdint>
#include <string>

#include "client/examples/text/data.h"
#include "client/examples/text/model.h"

namespace text {

struct SampleOptions {
  // What the text begins with; it has at least one character of the vocabulary.
  std::string prompt = "The ";
  int64_t num_characters = 400;
  // Below 1 the model keeps closer to what it finds likely; > 0.
  double temperature = 0.7;
  uint64_t seed = 1;
};

// `weights` has those of all units. Returns the prompt and num_characters more.
std::string Sample(const ModelConfig& config, const Weights& weights, const TextData& data,
                   const SampleOptions& options = {});

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_SAMPLE_H_
