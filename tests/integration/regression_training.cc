#include "tests/integration/regression_training.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace holdfast {
namespace {

constexpr int64_t kBatch = 16, kIn = 5, kHidden = 7, kOut = 3;
constexpr float kLearningRate = 0.05F, kMomentum = 0.9F;
constexpr double kEmaDecay = 0.9;

const std::vector<std::pair<std::string, std::vector<int64_t>>>& Shapes() {
  static const auto* const shapes = new std::vector<std::pair<std::string, std::vector<int64_t>>>{
      {"first.weight", {kHidden, kIn}}, {"first.bias", {kHidden}}, {"second.weight", {kOut, kHidden}},
      {"second.bias", {kOut}},          {"second.gain", {kOut}},
  };
  return *shapes;
}

bool IsFrozen(const std::string& name) { return name == "second.gain"; }

at::Tensor Random(uint64_t seed, at::IntArrayRef shape) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}

TensorsByName InitialValues() {
  TensorsByName values;
  for (size_t i = 0; i < Shapes().size(); ++i) {
    const auto& [name, shape] = Shapes()[i];
    values[name] = Random(1000 + i, shape) * 0.3 + (IsFrozen(name) ? 1 : 0);
  }
  return values;
}

struct LossAndGradients {
  double loss = 0;
  TensorsByName gradients;
};

// The mean over the batch of the squared error, and its gradient, by hand, for the batch of this rank at this step.
LossAndGradients Backward(const TensorsByName& values, uint64_t step, int32_t micro_batch, int32_t rank) {
  // The ranks are threads here, and the OpenBLAS for one thread (libopenblas0-serial) multiplies into memory that all
  // threads of a process share.
  static absl::Mutex one_at_a_time(absl::kConstInit);
  const absl::MutexLock lock(&one_at_a_time);
  const at::Tensor x = Random(step * 1000 + static_cast<uint64_t>(micro_batch * 100 + rank), {kBatch, kIn});
  const at::Tensor target = at::tanh(x.narrow(1, 0, kOut));
  const at::Tensor& gain = values.at("second.gain");
  const at::Tensor hidden = at::tanh(at::mm(x, values.at("first.weight").t()) + values.at("first.bias"));
  const at::Tensor raw = at::mm(hidden, values.at("second.weight").t()) + values.at("second.bias");
  const at::Tensor error = raw * gain - target;
  const at::Tensor to_raw = error * gain * (2.0 / kBatch);
  const at::Tensor to_hidden = at::mm(to_raw, values.at("second.weight")) * (1 - hidden * hidden);
  return {.loss = error.square().sum(1).mean().item<double>(),
          .gradients = {{"second.weight", at::mm(to_raw.t(), hidden)},
                        {"second.bias", to_raw.sum(0)},
                        {"first.weight", at::mm(to_hidden.t(), x)},
                        {"first.bias", to_hidden.sum(0)}}};
}

void Update(at::Tensor parameter, at::Tensor momentum, const at::Tensor& gradient) {
  momentum.mul_(kMomentum).add_(gradient);
  parameter.sub_(momentum * kLearningRate);
}

// Copies of a gathered unit's parameters, so that the arithmetic has the same operands, laid out alike, everywhere.
absl::Status CopyOut(const GatheredUnit& unit, TensorsByName& values) {
  for (size_t flat = 0; flat < unit.layout().flat_parameters.size(); ++flat) {
    const FlatParameter& layout = unit.layout().flat_parameters[flat];
    for (size_t i = 0; i < layout.parameters.size(); ++i) {
      values[layout.parameters[i].name] = unit.parameter(flat, i).clone();
    }
  }
  return absl::OkStatus();
}

absl::Status ReduceUnit(Worker& worker, UnitIndex unit, const TensorsByName& gradients, bool accumulate,
                        std::vector<Future<void>>& reduced) {
  absl::StatusOr<GradientSlot> slot = worker.AcquireGradient(unit);
  if (!slot.ok()) return slot.status();
  const UnitLayout& layout = worker.layout().unit(unit);
  for (size_t flat = 0; flat < layout.flat_parameters.size(); ++flat) {
    if (!layout.flat_parameters[flat].trainable) continue;
    const std::vector<ParameterLayout>& parameters = layout.flat_parameters[flat].parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      slot->parameter(flat, i).copy_(gradients.at(parameters[i].name));
    }
  }
  reduced.push_back(worker.ReduceScatter(*std::move(slot), accumulate));
  return absl::OkStatus();
}

absl::Status MicroBatch(Worker& worker, int32_t micro_batch, std::vector<Future<void>>& reduced) {
  const UnitIndex first(0), second(1);
  TensorsByName values;
  for (const UnitIndex unit : {first, second}) {
    const std::vector<UnitIndex> prefetch = unit == first ? std::vector{second} : std::vector<UnitIndex>();
    const absl::StatusOr<GatheredUnit> gathered = worker.Gather(unit, prefetch);
    if (!gathered.ok()) return gathered.status();
    if (absl::Status status = CopyOut(*gathered, values); !status.ok()) return status;
    if (absl::Status status = worker.Release(unit); !status.ok()) return status;
  }
  const TensorsByName gradients = Backward(values, worker.step().value(), micro_batch, worker.rank().value()).gradients;
  for (const UnitIndex unit : {second, first}) {
    if (absl::Status status = ReduceUnit(worker, unit, gradients, micro_batch > 0, reduced); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

v1::ModelSpec RegressionSpec(const std::string& name, const v1::Mesh& mesh) {
  v1::ModelSpec spec;
  spec.set_name(name);
  *spec.mutable_mesh() = mesh;
  spec.add_units()->set_name("first");
  spec.add_units()->set_name("second");
  for (const auto& [tensor, shape] : Shapes()) {
    v1::ParameterSpec& parameter = *spec.mutable_units(tensor.starts_with("first") ? 0 : 1)->add_parameters();
    parameter.set_name(tensor);
    parameter.mutable_shape()->Add(shape.begin(), shape.end());
    parameter.set_dtype(v1::DATA_TYPE_FLOAT32);
    parameter.set_frozen(IsFrozen(tensor));
  }
  v1::EmaSpec& ema = *spec.add_emas();
  ema.set_name("ema");
  ema.mutable_constant()->set_decay(kEmaDecay);
  spec.mutable_optimizer()->mutable_worker()->add_states()->set_name("momentum");
  return spec;
}

absl::Status TrainRegression(Worker& worker, const RegressionRun& run,
                             const std::function<absl::Status(uint64_t step)>& committed) {
  const TensorsByName initial = InitialValues();
  const auto value = [&](std::string_view name) -> absl::StatusOr<at::Tensor> { return initial.at(std::string(name)); };
  if (absl::Status status = worker.Initialize(value); !status.ok()) return status;
  for (uint64_t step = 0; step < run.num_steps; ++step) {
    std::vector<Future<void>> reduced;
    for (int32_t micro_batch = 0; micro_batch < run.micro_batches; ++micro_batch) {
      if (absl::Status status = MicroBatch(worker, micro_batch, reduced); !status.ok()) return status;
    }
    for (const Future<void>& future : reduced) {
      if (absl::Status status = future.Wait(); !status.ok()) return status;
    }
    if (absl::Status status = worker.BeginUpdate(); !status.ok()) return status;
    for (const UnitShards& unit : worker.shards()) {
      for (const FlatShard& shard : unit.flat_parameters) {
        if (shard.layout->trainable) Update(shard.parameter, shard.states.at("momentum"), shard.gradient);
      }
    }
    const absl::StatusOr<Step> now = worker.CommitUpdate(/*ema_step=*/true);
    if (!now.ok()) return now.status();
    if (absl::Status status = committed(now->value()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

RegressionHistory TrainUnsharded(const RegressionRun& run) {
  TensorsByName values = InitialValues(), momentum, ema;
  for (const auto& [name, value] : values) {
    if (IsFrozen(name)) continue;
    momentum[name] = at::zeros_like(value);
    ema[name] = value.clone();
  }
  RegressionHistory history;
  const auto remember = [](const TensorsByName& tensors) {
    TensorsByName copies;
    for (const auto& [name, tensor] : tensors) copies[name] = tensor.clone();
    return copies;
  };
  history.values.push_back(remember(values));
  history.ema.push_back(remember(ema));
  for (uint64_t step = 0; step < run.num_steps; ++step) {
    TensorsByName total;
    double loss = 0;
    for (int32_t micro_batch = 0; micro_batch < run.micro_batches; ++micro_batch) {
      TensorsByName sum;
      for (int32_t rank = 0; rank < run.world; ++rank) {
        const LossAndGradients of_rank = Backward(values, step, micro_batch, rank);
        loss += of_rank.loss;
        for (const auto& [name, gradient] : of_rank.gradients) {
          sum[name] = rank == 0 ? gradient : sum[name] + gradient;
          history.largest_gradient = std::max(history.largest_gradient, gradient.abs().max().item<double>());
        }
      }
      for (auto& [name, gradient] : sum) {
        gradient = gradient / run.world;
        total[name] = micro_batch == 0 ? gradient : total[name] + gradient;
      }
    }
    history.losses.push_back(loss / run.world / run.micro_batches);
    for (const auto& [name, gradient] : total) {
      Update(values[name], momentum[name], gradient);
      ema[name] = ema[name] * kEmaDecay + values[name] * (1 - kEmaDecay);
    }
    history.values.push_back(remember(values));
    history.ema.push_back(remember(ema));
  }
  return history;
}

}  // namespace holdfast
