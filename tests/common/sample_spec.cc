#include "tests/common/sample_spec.h"

namespace holdfast {
namespace {

void AddBuffer(v1::UnitSpec& unit, const std::string& name, int64_t length, v1::DataType dtype) {
  v1::BufferSpec& buffer = *unit.add_buffers();
  buffer.set_name(name);
  buffer.add_shape(length);
  buffer.set_dtype(dtype);
}

}  // namespace

v1::ParameterSpec& AddParameter(v1::UnitSpec& unit, const std::string& name, const std::vector<int64_t>& shape,
                                v1::DataType dtype) {
  v1::ParameterSpec& parameter = *unit.add_parameters();
  parameter.set_name(name);
  parameter.mutable_shape()->Add(shape.begin(), shape.end());
  parameter.set_dtype(dtype);
  return parameter;
}

void SetShape(v1::ParameterSpec& parameter, const std::vector<int64_t>& shape) {
  parameter.mutable_shape()->Clear();
  parameter.mutable_shape()->Add(shape.begin(), shape.end());
}

void SetMesh(v1::ModelSpec& spec, v1::ShardingStrategy strategy, uint32_t num_replicate, uint32_t num_shard) {
  spec.mutable_mesh()->set_strategy(strategy);
  spec.mutable_mesh()->set_num_replicate(num_replicate);
  spec.mutable_mesh()->set_num_shard(num_shard);
}

v1::ModelSpec SampleSpec() {
  v1::ModelSpec spec;
  spec.set_name("sample");
  spec.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_FULL_SHARD);
  spec.mutable_precision()->set_param(v1::DATA_TYPE_BFLOAT16);
  spec.mutable_precision()->set_reduce(v1::DATA_TYPE_FLOAT32);
  spec.mutable_precision()->set_master(v1::DATA_TYPE_FLOAT32);

  v1::UnitSpec& embed = *spec.add_units();
  embed.set_name("embed");
  AddParameter(embed, "embed.weight", {5, 3});
  AddBuffer(embed, "embed.positions", 7, v1::DATA_TYPE_INT64);
  v1::UnitSpec& block = *spec.add_units();
  block.set_name("block");
  AddParameter(block, "block.weight", {4, 4}, v1::DATA_TYPE_BFLOAT16);
  AddParameter(block, "block.bias", {4});
  AddParameter(block, "block.scale", {}).set_frozen(true);
  AddParameter(block, "block.codes", {3}, v1::DATA_TYPE_FLOAT8_E4M3FN).set_frozen(true);
  AddBuffer(block, "block.mean", 4, v1::DATA_TYPE_FLOAT32);
  v1::UnitSpec& head = *spec.add_units();
  head.set_name("head");
  AddParameter(head, "head.weight", {5, 3}).set_alias_of("embed.weight");
  AddParameter(head, "head.bias", {5});

  v1::EmaSpec& slow = *spec.add_emas();
  slow.set_name("slow");
  slow.mutable_constant()->set_decay(0.999);
  v1::EmaSpec& fast = *spec.add_emas();
  fast.set_name("fast");
  fast.set_dtype(v1::DATA_TYPE_BFLOAT16);
  fast.mutable_warmup()->set_decay(0.99);
  v1::WorkerOptimizer& worker = *spec.mutable_optimizer()->mutable_worker();
  worker.add_states()->set_name("exp_avg");
  worker.add_states()->set_name("exp_avg_sq");
  worker.mutable_states(1)->set_dtype(v1::DATA_TYPE_BFLOAT16);
  return spec;
}

}  // namespace holdfast
