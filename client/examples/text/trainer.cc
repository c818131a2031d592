#include "client/examples/text/trainer.h"

#include <ATen/ATen.h>

#include "client/examples/text/adamw.h"
#include "client/examples/text/backward.h"
#include "client/examples/text/model_spec.h"

namespace text {
namespace {

holdfast::UnitIndex Index(size_t unit) { return holdfast::UnitIndex(static_cast<int32_t>(unit)); }

absl::Span<float> Values(const at::Tensor& shard) {
  return {shard.data_ptr<float>(), static_cast<size_t>(shard.numel())};
}

}  // namespace

Trainer::Trainer(const TrainingConfig& config, const TextData& data, holdfast::Worker& worker)
    : config_(config), data_(data), worker_(worker), units_(Units(config.model)) {}

absl::Status Trainer::Step() {
  const uint64_t step = worker_.step().value() + 1;
  if (absl::Status status = ForwardBackward(step); !status.ok()) return status;
  return Update(step);
}

absl::Status Trainer::ForwardBackward(uint64_t step) {
  at::NoGradGuard no_graph;
  reductions_.clear();
  const Batch batch = data_.Draw(config_.seed, step, worker_.rank().value(), config_.batch_size, config_.model.context);
  const size_t last = num_units() - 1;

  // Forward keeps the input of each unit, and no weights.
  std::vector<at::Tensor> inputs = {batch.inputs};
  for (size_t unit = 0; unit <= last; ++unit) {
    const absl::StatusOr<Weights> weights = Gather(unit, unit + 1);
    if (!weights.ok()) return weights.status();
    inputs.push_back(ForwardUnit(config_.model, unit, *weights, inputs.back()));
    // SHARD_GRAD_OP keeps all units for backward; the last one is needed again at once in any case.
    const bool keep = unit == last || worker_.layout().strategy() == holdfast::v1::SHARDING_STRATEGY_SHARD_GRAD_OP;
    if (keep) continue;
    if (absl::Status status = Release(unit); !status.ok()) return status;
  }
  const LossGradient loss = CrossEntropyGradient(inputs.back(), batch.targets);
  loss_ = loss.loss;

  // Backward gathers once more; gradients of the units behind are reduced meanwhile.
  at::Tensor gradient = loss.logits;
  for (size_t unit = last + 1; unit-- > 0;) {
    const absl::StatusOr<Weights> weights = Gather(unit, unit > 0 ? unit - 1 : num_units());
    if (!weights.ok()) return weights.status();
    const UnitGradients gradients = BackwardUnit(config_.model, unit, *weights, inputs[unit], gradient);
    if (absl::Status status = Release(unit); !status.ok()) return status;
    if (absl::Status status = StartReduce(unit, gradients.weights); !status.ok()) return status;
    gradient = gradients.input;
  }
  for (const holdfast::Future<void>& reduction : reductions_) {
    if (absl::Status status = Timed([&] { return reduction.Wait(); }); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Trainer::Update(uint64_t step) {
  if (absl::Status status = Timed([&] { return worker_.BeginUpdate(); }); !status.ok()) return status;
  const AdamWOptions adamw = AdamWAt(config_, step);
  for (const holdfast::UnitShards& unit : worker_.shards()) {
    for (const holdfast::FlatShard& shard : unit.flat_parameters) {
      AdamWStep(adamw, step,
                {.parameter = Values(shard.parameter),
                 .gradient = Values(shard.gradient),
                 .exp_avg = Values(shard.states.at(kExpAvg)),
                 .exp_avg_sq = Values(shard.states.at(kExpAvgSq))});
    }
  }
  return Timed([&] { return worker_.CommitUpdate(/*ema_step=*/true); }).status();
}

absl::StatusOr<Weights> Trainer::Gather(size_t unit, size_t next) {
  std::vector<holdfast::UnitIndex> prefetch;
  if (next < num_units()) prefetch.push_back(Index(next));
  const absl::StatusOr<holdfast::GatheredUnit> gathered = Timed([&] { return worker_.Gather(Index(unit), prefetch); });
  if (!gathered.ok()) return gathered.status();
  Weights weights;
  for (const WeightInfo& info : units_[unit].weights) {
    const absl::StatusOr<at::Tensor> weight = gathered->Find(info.name);
    if (!weight.ok()) return weight.status();
    weights[info.name] = *weight;
  }
  return weights;
}

absl::Status Trainer::Release(size_t unit) {
  return Timed([&] { return worker_.Release(Index(unit)); });
}

absl::Status Trainer::StartReduce(size_t unit, const Weights& gradients) {
  absl::StatusOr<holdfast::GradientSlot> slot = Timed([&] { return worker_.AcquireGradient(Index(unit)); });
  if (!slot.ok()) return slot.status();
  for (const auto& [name, gradient] : gradients) {
    const absl::StatusOr<at::Tensor> place = slot->Find(name);
    if (!place.ok()) return place.status();
    place->copy_(gradient);
  }
  reductions_.push_back(Timed([&] { return worker_.ReduceScatter(*std::move(slot)); }));
  return absl::OkStatus();
}

}  // namespace text
