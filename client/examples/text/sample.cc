#include "client/examples/text/sample.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace text {

std::string Sample(const ModelConfig& config, const Weights& weights, const TextData& data,
                   const SampleOptions& options) {
  at::NoGradGuard no_graph;
  at::Generator random = at::detail::createCPUGenerator(options.seed);
  const size_t num_units = Units(config).size();
  at::Tensor characters = data.Encode(options.prompt);
  std::string text = options.prompt;
  for (int64_t i = 0; i < options.num_characters; ++i) {
    at::Tensor output = characters.slice(0, std::max<int64_t>(0, characters.size(0) - config.context)).unsqueeze(0);
    for (size_t unit = 0; unit < num_units; ++unit) output = ForwardUnit(config, unit, weights, output);
    const at::Tensor likely = at::softmax(output[0][-1] / options.temperature, -1);
    const at::Tensor next = at::multinomial(likely, 1, /*replacement=*/true, random);
    characters = at::cat({characters, next});
    text += data.vocabulary()[static_cast<size_t>(next.item<int64_t>())];
  }
  return text;
}

}  // namespace text
