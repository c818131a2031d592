#include "client/examples/text/model.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace text {
namespace {

WeightInfo Matrix(std::string name, int64_t out, int64_t in, double gain = 1) {
  return {.name = std::move(name), .shape = {out, in}, .init_stddev = gain / std::sqrt(static_cast<double>(in))};
}

void AddNorm(const std::string& name, int64_t width, std::vector<WeightInfo>& weights) {
  weights.push_back({.name = name + ".weight", .shape = {width}, .init_mean = 1});
  weights.push_back({.name = name + ".bias", .shape = {width}});
}

std::string LayerName(int64_t layer) { return absl::StrCat("layers.", layer); }

// Looks the weights of one module up, in float32.
class Module {
 public:
  Module(const Weights& weights, std::string name) : weights_(weights), name_(std::move(name)) {}

  at::Tensor Weight(const std::string& suffix) const { return weights_.at(name_ + "." + suffix).to(at::kFloat); }
  at::Tensor Linear(const std::string& suffix, const at::Tensor& input) const {
    return at::linear(input, Weight(suffix + ".weight"));
  }
  at::Tensor Norm(const std::string& suffix, const at::Tensor& input) const {
    return at::layer_norm(input, {input.size(-1)}, Weight(suffix + ".weight"), Weight(suffix + ".bias"));
  }

 private:
  const Weights& weights_;
  std::string name_;
};

at::Tensor Embed(const Module& embed, const at::Tensor& characters) {
  const at::Tensor positions = at::arange(characters.size(1));
  return at::embedding(embed.Weight("character.weight"), characters) +
         at::embedding(embed.Weight("position.weight"), positions);
}

// Each character looks at itself and at those before it.
at::Tensor Attention(const Module& layer, int64_t num_heads, const at::Tensor& input) {
  const int64_t batch = input.size(0), length = input.size(1), width = input.size(2);
  const at::Tensor qkv = layer.Linear("attention.qkv", input)
                             .view({batch, length, 3, num_heads, width / num_heads})
                             .permute({2, 0, 3, 1, 4});
  const at::Tensor query = qkv[0], key = qkv[1], value = qkv[2];
  const at::Tensor scores =
      at::matmul(query, key.transpose(-2, -1)) / std::sqrt(static_cast<double>(width / num_heads));
  const at::Tensor later = at::ones({length, length}, at::kBool).triu(1);
  const at::Tensor weights = at::softmax(scores.masked_fill(later, -std::numeric_limits<float>::infinity()), -1);
  const at::Tensor mixed = at::matmul(weights, value).transpose(1, 2).reshape({batch, length, width});
  return layer.Linear("attention.out", mixed);
}

at::Tensor Mlp(const Module& layer, const at::Tensor& input) {
  return layer.Linear("mlp.down", at::gelu(layer.Linear("mlp.up", input)));
}

at::Tensor Layer(const Module& layer, int64_t num_heads, const at::Tensor& input) {
  const at::Tensor attended = input + Attention(layer, num_heads, layer.Norm("norm1", input));
  return attended + Mlp(layer, layer.Norm("norm2", attended));
}

}  // namespace

absl::Status Validate(const ModelConfig& config) {
  const auto positive = [](const char* field, int64_t value) {
    if (value >= 1) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(field, " is ", value, "; it must be at least 1"));
  };
  for (const auto& [field, value] : {std::pair{"vocabulary_size", config.vocabulary_size},
                                     {"context", config.context},
                                     {"width", config.width},
                                     {"heads", config.num_heads},
                                     {"layers", config.num_layers}}) {
    if (absl::Status status = positive(field, value); !status.ok()) return status;
  }
  if (config.width % config.num_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("width is ", config.width, "; it must be a multiple of heads, which is ", config.num_heads));
  }
  return absl::OkStatus();
}

std::vector<Unit> Units(const ModelConfig& config) {
  const int64_t width = config.width;
  std::vector<Unit> units;
  units.push_back(
      {.name = "embed",
       .weights = {{.name = "embed.character.weight", .shape = {config.vocabulary_size, width}, .init_stddev = 0.1},
                   {.name = "embed.position.weight", .shape = {config.context, width}, .init_stddev = 0.1}}});
  // What is added to the residual stream starts small, so that its variance does not grow with the number of layers.
  const double residual_gain = 1 / std::sqrt(2.0 * static_cast<double>(config.num_layers));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string name = LayerName(i);
    std::vector<WeightInfo> weights;
    AddNorm(name + ".norm1", width, weights);
    weights.push_back(Matrix(name + ".attention.qkv.weight", 3 * width, width));
    weights.push_back(Matrix(name + ".attention.out.weight", width, width, residual_gain));
    AddNorm(name + ".norm2", width, weights);
    weights.push_back(Matrix(name + ".mlp.up.weight", 4 * width, width));
    weights.push_back(Matrix(name + ".mlp.down.weight", width, 4 * width, residual_gain));
    units.push_back({.name = name, .weights = std::move(weights)});
  }
  std::vector<WeightInfo> head;
  AddNorm("head.norm", width, head);
  head.push_back(Matrix("head.out.weight", config.vocabulary_size, width, 0.5));
  units.push_back({.name = "head", .weights = std::move(head)});
  return units;
}

Weights InitialWeights(const ModelConfig& config, uint64_t seed) {
  at::Generator random = at::detail::createCPUGenerator(seed);
  Weights weights;
  for (const Unit& unit : Units(config)) {
    for (const WeightInfo& info : unit.weights) {
      weights[info.name] = at::randn(info.shape, random, at::kFloat) * info.init_stddev + info.init_mean;
    }
  }
  return weights;
}

at::Tensor ForwardUnit(const ModelConfig& config, size_t unit, const Weights& weights, const at::Tensor& input) {
  if (unit == 0) return Embed(Module(weights, "embed"), input);
  const int64_t layer = static_cast<int64_t>(unit) - 1;
  if (layer < config.num_layers) return Layer(Module(weights, LayerName(layer)), config.num_heads, input);
  const Module head(weights, "head");
  return head.Linear("out", head.Norm("norm", input));
}

at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& targets) {
  return at::cross_entropy_loss(logits.view({-1, logits.size(-1)}), targets.reshape({-1}));
}

}  // namespace text
