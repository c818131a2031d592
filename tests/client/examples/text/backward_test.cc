#include "client/examples/text/backward.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "client/examples/text/data.h"

namespace text {
namespace {

const ModelConfig kConfig{.vocabulary_size = 13, .context = 10, .width = 24, .num_heads = 3, .num_layers = 2};

Batch RandomBatch() {
  return {.inputs = at::randint(13, {3, 10}, at::kLong), .targets = at::randint(13, {3, 10}, at::kLong)};
}

// The weights of one unit only, as a gather brings them.
Weights OfUnit(const Unit& unit, const Weights& all) {
  Weights weights;
  for (const WeightInfo& info : unit.weights) weights[info.name] = all.at(info.name);
  return weights;
}

struct Gradients {
  float loss = 0;
  Weights weights;
};

// As the trainer does it.
Gradients UnitByUnit(const Weights& all, const Batch& batch) {
  at::NoGradGuard no_graph;
  const std::vector<Unit> units = Units(kConfig);
  std::vector<at::Tensor> inputs = {batch.inputs};
  for (size_t unit = 0; unit < units.size(); ++unit) {
    inputs.push_back(ForwardUnit(kConfig, unit, OfUnit(units[unit], all), inputs.back()));
  }
  const LossGradient loss = CrossEntropyGradient(inputs.back(), batch.targets);
  Gradients result{.loss = loss.loss, .weights = {}};
  at::Tensor gradient = loss.logits;
  for (size_t unit = units.size(); unit-- > 0;) {
    UnitGradients of_unit = BackwardUnit(kConfig, unit, OfUnit(units[unit], all), inputs[unit], gradient);
    for (auto& [name, weight_gradient] : of_unit.weights) result.weights[name] = weight_gradient;
    gradient = of_unit.input;
  }
  return result;
}

// Plain autograd through the whole model.
Gradients Whole(const Weights& all, const Batch& batch) {
  Weights leaves;
  std::vector<std::string> names;
  std::vector<at::Tensor> inputs;
  for (const auto& [name, weight] : all) {
    leaves[name] = weight.to(at::kFloat).detach().requires_grad_(true);
    names.push_back(name);
    inputs.push_back(leaves[name]);
  }
  at::Tensor output = batch.inputs;
  for (size_t unit = 0; unit < Units(kConfig).size(); ++unit) output = ForwardUnit(kConfig, unit, leaves, output);
  const at::Tensor loss = CrossEntropy(output, batch.targets);
  const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, inputs);
  Gradients result{.loss = loss.item<float>(), .weights = {}};
  for (size_t i = 0; i < names.size(); ++i) result.weights[names[i]] = gradients[i];
  return result;
}

// The same operations on the same numbers: no tolerance.
void ExpectEqual(const Gradients& actual, const Gradients& expected) {
  EXPECT_EQ(actual.loss, expected.loss);
  ASSERT_EQ(actual.weights.size(), expected.weights.size());
  for (const auto& [name, gradient] : expected.weights) {
    ASSERT_TRUE(actual.weights.contains(name)) << name;
    EXPECT_EQ(actual.weights.at(name).dtype(), at::kFloat) << name;
    EXPECT_TRUE(at::equal(actual.weights.at(name), gradient)) << name;
    EXPECT_GT(gradient.abs().max().item<float>(), 0) << name;
  }
}

TEST(BackwardTest, UnitByUnit_Float32_EqualsAutogradOfTheWholeModel) {
  at::manual_seed(3);
  const Weights weights = InitialWeights(kConfig, 5);
  const Batch batch = RandomBatch();
  ExpectEqual(UnitByUnit(weights, batch), Whole(weights, batch));
}

TEST(BackwardTest, UnitByUnit_BFloat16Weights_EqualsAutogradOfTheWholeModel) {
  at::manual_seed(4);
  Weights weights = InitialWeights(kConfig, 5);
  for (auto& [name, weight] : weights) weight = weight.to(at::kBFloat16);
  const Batch batch = RandomBatch();
  ExpectEqual(UnitByUnit(weights, batch), Whole(weights, batch));
}

// One weight of each kind is moved a little each way: the loss must change as its gradient says. Float32 losses near
// 2.5 are exact to about 3e-7; over a distance of 2e-2 that is 3e-5 in the slope, and the third derivative gives more.
TEST(BackwardTest, UnitByUnit_AgainstFiniteDifferences) {
  at::manual_seed(5);
  const Weights weights = InitialWeights(kConfig, 6);
  const Batch batch = RandomBatch();
  const Gradients gradients = UnitByUnit(weights, batch);
  constexpr float kDistance = 1e-2;
  for (const auto& [name, weight] : weights) {
    const int64_t place = gradients.weights.at(name).abs().argmax().item<int64_t>();
    const auto loss_at = [&](float offset) {
      Weights moved = weights;
      moved[name] = weight.clone();
      moved[name].view(-1)[place] += offset;
      return Whole(moved, batch).loss;
    };
    const float slope = (loss_at(kDistance) - loss_at(-kDistance)) / (2 * kDistance);
    EXPECT_NEAR(gradients.weights.at(name).view(-1)[place].item<float>(), slope, 1e-3 + 0.02 * std::abs(slope)) << name;
  }
}

TEST(BackwardTest, CharactersBehind_DoNotChangeWhatIsSaid) {
  at::manual_seed(6);
  const Weights weights = InitialWeights(kConfig, 7);
  const at::Tensor characters = RandomBatch().inputs;
  at::Tensor changed = characters.clone();
  changed.slice(1, 6).fill_(1);
  at::Tensor one = characters, other = changed;
  for (size_t unit = 0; unit < Units(kConfig).size(); ++unit) {
    one = ForwardUnit(kConfig, unit, weights, one);
    other = ForwardUnit(kConfig, unit, weights, other);
  }
  EXPECT_TRUE(at::equal(one.slice(1, 0, 6), other.slice(1, 0, 6)));
  EXPECT_FALSE(at::equal(one.slice(1, 6), other.slice(1, 6)));
}

TEST(ModelTest, InitialWeights_SameSeed_SameValues) {
  const Weights one = InitialWeights(kConfig, 9), same = InitialWeights(kConfig, 9),
                other = InitialWeights(kConfig, 10);
  size_t num_weights = 0;
  for (const Unit& unit : Units(kConfig)) {
    for (const WeightInfo& info : unit.weights) {
      ++num_weights;
      EXPECT_EQ(one.at(info.name).sizes().vec(), info.shape);
      EXPECT_TRUE(at::equal(one.at(info.name), same.at(info.name))) << info.name;
      EXPECT_EQ(at::equal(one.at(info.name), other.at(info.name)), info.init_stddev == 0) << info.name;
    }
  }
  EXPECT_EQ(one.size(), num_weights);
}

TEST(ModelTest, Validate_WrongField_IsNamed) {
  ModelConfig config = kConfig;
  EXPECT_TRUE(Validate(config).ok());
  config.num_heads = 5;
  EXPECT_EQ(Validate(config).message(), "width is 24; it must be a multiple of heads, which is 5");
  config = kConfig;
  config.num_layers = 0;
  EXPECT_EQ(Validate(config).message(), "layers is 0; it must be at least 1");
}

}  // namespace
}  // namespace text
