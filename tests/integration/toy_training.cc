#include "tests/integration/toy_training.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

struct ToyTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool trainable = true;

  int64_t num_elements() const {
    int64_t count = 1;
    for (const int64_t length : shape) count *= length;
    return count;
  }
};

// The tied weight "head.weight" comes by its alias.
const std::vector<ToyTensor>& ToyTensors() {
  static const auto* const tensors = new std::vector<ToyTensor>{
      {.name = "embed.weight", .shape = {5, 7}},
      {.name = "embed.scale", .shape = {}},
      {.name = "embed.frozen", .shape = {3}, .trainable = false},
      {.name = "embed.steps", .shape = {2}, .trainable = false},  // The buffer.
      {.name = "block.weight", .shape = {4, 4}},
      {.name = "block.bias", .shape = {1}},
  };
  return *tensors;
}

constexpr std::string_view kBuffer = "embed.steps";

float InitialValue(const ToyTensor& tensor, int64_t element) {
  return tensor.name == kBuffer ? 0.0F
                                : static_cast<float>((element * 7 + static_cast<int64_t>(tensor.name.size())) % 16);
}

// All binary fractions with few digits; the mean over the ranks is exact, as the ranks' parts are multiples of `world`.
float GradientOf(float parameter, int64_t element, int32_t rank, int32_t world) {
  return parameter * 0.5F + static_cast<float>(element % 8) + static_cast<float>(rank * world);
}

// Momentum 1/2, learning rate 1/4.
void Update(float* parameter, float* momentum, const float* gradient, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    momentum[i] = momentum[i] * 0.5F + gradient[i];
    parameter[i] -= momentum[i] * 0.25F;
  }
}

const ToyTensor& FindToyTensor(std::string_view name) {
  return *std::find_if(ToyTensors().begin(), ToyTensors().end(), [name](const ToyTensor& t) { return t.name == name; });
}

absl::StatusOr<at::Tensor> Initial(std::string_view name) {
  const ToyTensor& tensor = FindToyTensor(name);
  at::Tensor values = at::empty(tensor.shape, at::kFloat);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values.data_ptr<float>()[i] = InitialValue(tensor, i);
  return values;
}

absl::Status Backward(Worker& worker, UnitIndex unit, int32_t world, const GatheredUnit& gathered, const ToyHook& hook,
                      std::vector<Future<void>>& reduced) {
  absl::StatusOr<GradientSlot> slot = worker.AcquireGradient(unit);
  if (!slot.ok()) return slot.status();
  slot->Zero();
  hook("before_reduce");
  const UnitLayout& layout = worker.layout().unit(unit);
  for (size_t flat = 0; flat < layout.flat_parameters.size(); ++flat) {
    if (!layout.flat_parameters[flat].trainable) continue;
    const std::vector<ParameterLayout>& parameters = layout.flat_parameters[flat].parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const float* values = gathered.parameter(flat, i).data_ptr<float>();
      float* gradient = slot->parameter(flat, i).data_ptr<float>();
      for (int64_t element = 0; element < parameters[i].num_elements; ++element) {
        gradient[element] = GradientOf(values[element], element, worker.rank().value(), world);
      }
    }
  }
  reduced.push_back(worker.ReduceScatter(*std::move(slot)));
  return absl::OkStatus();
}

absl::Status WriteShards(Worker& worker, const ToyHook& hook) {
  bool first = true;
  for (const UnitShards& unit : worker.shards()) {
    for (const FlatShard& shard : unit.flat_parameters) {
      if (!shard.layout->trainable) continue;
      float* parameter = shard.parameter.data_ptr<float>();
      float* momentum = shard.states.at("momentum").data_ptr<float>();
      const float* gradient = shard.gradient.data_ptr<float>();
      const int64_t half = shard.layout->shard_elements / 2;
      Update(parameter, momentum, gradient, 0, half);
      if (std::exchange(first, false)) hook("half_written");
      Update(parameter, momentum, gradient, half, shard.layout->shard_elements);
    }
    for (const auto& [name, buffer] : unit.buffers) at::Tensor(buffer).add_(1);
  }
  return absl::OkStatus();
}

absl::Status TrainStep(Worker& worker, int32_t world, const ToyHook& hook) {
  const UnitIndex embed(0), block(1);
  hook("before_gather");
  absl::StatusOr<GatheredUnit> first = worker.Gather(embed, {block});
  if (!first.ok()) return first.status();
  absl::StatusOr<GatheredUnit> second = worker.Gather(block);
  if (!second.ok()) return second.status();
  hook("after_gather");
  std::vector<Future<void>> reduced;
  if (absl::Status status = Backward(worker, block, world, *second, hook, reduced); !status.ok()) return status;
  if (absl::Status status = worker.Release(block); !status.ok()) return status;
  if (absl::Status status = worker.FlushReleases(); !status.ok()) return status;
  hook("after_release");
  if (absl::Status status = Backward(worker, embed, world, *first, hook, reduced); !status.ok()) return status;
  for (const Future<void>& future : reduced) {
    if (absl::Status status = future.Wait(); !status.ok()) return status;
  }
  hook("after_reduce");
  hook("before_begin");
  if (absl::Status status = worker.BeginUpdate(); !status.ok()) return status;
  hook("after_begin");
  if (absl::Status status = WriteShards(worker, hook); !status.ok()) return status;
  hook("before_commit");
  // Both ways of moving the EMA.
  const bool ema_in_commit = worker.step().value() % 2 == 1;
  if (absl::StatusOr<Step> step = worker.CommitUpdate(ema_in_commit); !step.ok()) return step.status();
  hook("after_commit");
  return absl::OkStatus();
}

absl::Status Compare(const ModelTensor& pulled, const std::vector<float>& expected) {
  const at::Tensor values = pulled.tensor.contiguous();
  if (pulled.dtype != DType::kFloat32 || values.numel() != static_cast<int64_t>(expected.size())) {
    return absl::InternalError(
        absl::StrCat(pulled.name, ": ", values.numel(), " elements of ", std::string(Name(pulled.dtype))));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const float value = values.data_ptr<float>()[i];
    if (value == expected[i]) continue;
    return absl::InternalError(absl::StrCat(pulled.name, "[", i, "] of step ", pulled.step.value(), " is ", value,
                                            ", expected ", expected[i]));
  }
  return absl::OkStatus();
}

}  // namespace

v1::ModelSpec ToySpec(const std::string& name, v1::ShardingStrategy strategy) {
  v1::ModelSpec spec;
  spec.set_name(name);
  spec.mutable_mesh()->set_strategy(strategy);
  v1::UnitSpec* const embed = spec.add_units();
  v1::UnitSpec* const block = spec.add_units();
  embed->set_name("embed");
  block->set_name("block");
  for (const ToyTensor& tensor : ToyTensors()) {
    v1::UnitSpec& unit = *(tensor.name.starts_with("embed.") ? embed : block);
    if (tensor.name == kBuffer) {
      v1::BufferSpec& buffer = *unit.add_buffers();
      buffer.set_name(tensor.name);
      buffer.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
      buffer.set_dtype(v1::DATA_TYPE_FLOAT32);
      continue;
    }
    v1::ParameterSpec& parameter = *unit.add_parameters();
    parameter.set_name(tensor.name);
    parameter.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    parameter.set_dtype(v1::DATA_TYPE_FLOAT32);
    parameter.set_frozen(!tensor.trainable);
  }
  v1::ParameterSpec& tied = *block->add_parameters();
  tied = embed->parameters(0);
  tied.set_name("head.weight");
  tied.set_alias_of("embed.weight");
  v1::EmaSpec& ema = *spec.add_emas();
  ema.set_name("fast");
  ema.mutable_constant()->set_decay(0.5);
  spec.mutable_optimizer()->mutable_worker()->add_states()->set_name("momentum");
  return spec;
}

absl::Status TrainToy(Worker& worker, int32_t world, uint64_t until, const ToyHook& hook) {
  if (!worker.state().initialized()) {
    const absl::Status status = worker.Initialize([&](std::string_view name) {
      hook("in_initialize");
      return Initial(name);
    });
    if (!status.ok()) return status;
  }
  while (true) {
    if (worker.state().emas(0).step() < worker.step().value()) {
      hook("before_ema");
      if (auto moved = worker.EmaStep(); !moved.ok()) return moved.status();
      hook("after_ema");
    }
    if (worker.step().value() >= until) return absl::OkStatus();
    if (absl::Status status = TrainStep(worker, world, hook); !status.ok()) return status;
  }
}

ToyReference::ToyReference(int32_t world, uint64_t steps) {
  for (const ToyTensor& tensor : ToyTensors()) {
    const auto count = static_cast<size_t>(tensor.num_elements());
    std::vector<float> values(count), momentum(count), gradient(count);
    for (size_t i = 0; i < count; ++i) values[i] = InitialValue(tensor, static_cast<int64_t>(i));
    std::vector<float> ema = values;
    for (uint64_t step = 0; step < steps; ++step) {
      if (tensor.name == kBuffer) {
        for (float& value : values) value += 1;
      }
      if (!tensor.trainable) continue;
      for (size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int32_t rank = 0; rank < world; ++rank) {
          sum += GradientOf(values[i], static_cast<int64_t>(i), rank, world);
        }
        gradient[i] = sum / static_cast<float>(world);
      }
      Update(values.data(), momentum.data(), gradient.data(), 0, static_cast<int64_t>(count));
      for (size_t i = 0; i < count; ++i) ema[i] = ema[i] * 0.5F + values[i] * 0.5F;
    }
    if (tensor.trainable) ema_[tensor.name] = std::move(ema);
    values_[tensor.name] = std::move(values);
  }
  values_["head.weight"] = values_["embed.weight"];
  ema_["head.weight"] = ema_["embed.weight"];
}

absl::Status CheckToy(Client& client, const std::string& model, int32_t world, uint64_t step) {
  for (const std::string& ema : {std::string(), std::string("fast")}) {
    const absl::StatusOr<std::vector<ModelTensor>> pulled = client.Pull(model, {.ema = ema});
    if (!pulled.ok()) return pulled.status();
    const ToyReference reference(world, step);
    const std::map<std::string, std::vector<float>>& expected = ema.empty() ? reference.values() : reference.ema();
    if (pulled->size() != expected.size()) return absl::InternalError(absl::StrCat(pulled->size(), " tensors"));
    for (const ModelTensor& tensor : *pulled) {
      if (tensor.step.value() != step) {
        return absl::FailedPreconditionError(
            absl::StrCat(ema, " ", tensor.name, " is of step ", tensor.step.value(), ", not ", step));
      }
      if (absl::Status status = Compare(tensor, expected.at(tensor.name)); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace holdfast
