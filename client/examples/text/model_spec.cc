#include "client/examples/text/model_spec.h"

#include <algorithm>

namespace text {
namespace {

namespace v1 = holdfast::v1;

v1::DataType ToDataType(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return v1::DATA_TYPE_FLOAT32;
    case at::kBFloat16:
      return v1::DATA_TYPE_BFLOAT16;
    case at::kHalf:
      return v1::DATA_TYPE_FLOAT16;
    default:
      return v1::DATA_TYPE_UNSPECIFIED;
  }
}

}  // namespace

v1::ModelSpec MakeModelSpec(const TrainingConfig& config, const Sharding& sharding) {
  v1::ModelSpec spec;
  spec.set_name(sharding.model_name);
  for (const Unit& unit : Units(config.model)) {
    v1::UnitSpec& unit_spec = *spec.add_units();
    unit_spec.set_name(unit.name);
    for (const WeightInfo& weight : unit.weights) {
      v1::ParameterSpec& parameter = *unit_spec.add_parameters();
      parameter.set_name(weight.name);
      parameter.mutable_shape()->Assign(weight.shape.begin(), weight.shape.end());
      parameter.set_dtype(v1::DATA_TYPE_FLOAT32);
    }
  }
  spec.mutable_mesh()->set_strategy(sharding.strategy);
  if (sharding.num_replicate > 0) {
    spec.mutable_mesh()->set_num_replicate(static_cast<uint32_t>(sharding.num_replicate));
    spec.mutable_mesh()->set_num_shard(static_cast<uint32_t>(config.num_ranks / sharding.num_replicate));
  }
  spec.mutable_precision()->set_param(ToDataType(config.param_dtype));
  spec.mutable_precision()->set_reduce(v1::DATA_TYPE_FLOAT32);
  spec.mutable_precision()->set_master(v1::DATA_TYPE_FLOAT32);
  v1::EmaSpec& ema = *spec.add_emas();
  ema.set_name(kEma);
  ema.mutable_constant()->set_decay(config.ema_decay);
  for (const char* state : {kExpAvg, kExpAvgSq})
    spec.mutable_optimizer()->mutable_worker()->add_states()->set_name(state);
  return spec;
}

}  // namespace text
