#include "client/examples/text/sample.h"

#include <gtest/gtest.h>

#include <string>

#include "client/examples/text/solo.h"

namespace text {
namespace {

std::string Alphabet(int repeats) {
  std::string text;
  for (int i = 0; i < repeats; ++i) text += "abcdefgh";
  return text;
}

// A text that repeats itself can be learned by heart in a moment.
TEST(SampleTest, TrainedOnARepeatingText_WritesIt) {
  const auto data = TextData::FromString(Alphabet(40));
  ASSERT_TRUE(data.ok());
  TrainingConfig config;
  config.model = {.vocabulary_size = 8, .context = 16, .width = 16, .num_heads = 2, .num_layers = 1};
  config.num_ranks = 2;
  config.num_steps = 80;
  config.param_dtype = at::kFloat;
  float first = 0, last = 0;
  const SoloResult result = TrainSolo(config, *data, [&](const StepReport& report) {
    if (report.step == 1) first = report.loss;
    last = report.loss;
  });
  EXPECT_LT(last, first / 4);
  // Longer than the context, so that it must look on what it wrote itself.
  const SampleOptions options{.prompt = "cde", .num_characters = 40, .temperature = 0.1, .seed = 2};
  EXPECT_EQ(Sample(config.model, result.weights, *data, options), Alphabet(6).substr(2, 43));
  EXPECT_EQ(Sample(config.model, result.ema, *data, options), Alphabet(6).substr(2, 43));
}

}  // namespace
}  // namespace text
