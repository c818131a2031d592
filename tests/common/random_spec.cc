#include "tests/common/random_spec.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

// The distributions of the standard library differ from one to another; these are the same everywhere.
class Chance {
 public:
  explicit Chance(std::mt19937_64& random) : random_(random) {}

  // 0 to below − 1.
  int Below(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  bool OneIn(int times) { return Below(times) == 0; }
  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(static_cast<int>(values.size())))];
  }

 private:
  std::mt19937_64& random_;
};

const std::vector<v1::DataType> kArithmetic = {v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_BFLOAT16, v1::DATA_TYPE_FLOAT16,
                                               v1::DATA_TYPE_FLOAT64};
const std::vector<v1::DataType> kCarried = {v1::DATA_TYPE_FLOAT8_E4M3FN, v1::DATA_TYPE_FLOAT8_E5M2, v1::DATA_TYPE_INT64,
                                            v1::DATA_TYPE_INT16, v1::DATA_TYPE_BOOL};

v1::DataType DTypeOrDefault(Chance& chance) {
  return chance.OneIn(2) ? v1::DATA_TYPE_UNSPECIFIED : chance.OneOf(kArithmetic);
}

v1::DataType CopyDType(Chance& chance) {
  return chance.OneOf<v1::DataType>(
      {v1::DATA_TYPE_UNSPECIFIED, v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_FLOAT64, v1::DATA_TYPE_BFLOAT16});
}

std::string Ending(Chance& chance) { return chance.OneIn(10) ? std::string(kIgnoredEnding) : ""; }

void SetMesh(Chance& chance, int32_t world, v1::Mesh& mesh) {
  mesh.set_strategy(static_cast<v1::ShardingStrategy>(1 + chance.Below(4)));
  if (mesh.strategy() != v1::SHARDING_STRATEGY_HYBRID_SHARD) return;
  int32_t num_shard = 1 + chance.Below(world);
  while (world % num_shard != 0) --num_shard;
  mesh.set_num_shard(static_cast<uint32_t>(num_shard));
  mesh.set_num_replicate(static_cast<uint32_t>(world / num_shard));
}

template <typename Tensor>
void SetShape(Chance& chance, Tensor& tensor) {
  const int num_dimensions = chance.Below(4);
  for (int i = 0; i < num_dimensions; ++i) tensor.add_shape(chance.OneIn(12) ? 0 : 1 + chance.Below(7));
}

void AddParameters(Chance& chance, std::vector<v1::ParameterSpec>& tieable, v1::UnitSpec& unit) {
  const int num_parameters = chance.Below(9);
  for (int i = 0; i < num_parameters; ++i) {
    v1::ParameterSpec& parameter = *unit.add_parameters();
    if (!tieable.empty() && chance.OneIn(8)) {
      parameter = chance.OneOf(tieable);
      parameter.set_alias_of(parameter.name());
    } else {
      SetShape(chance, parameter);
      const bool is_carried = chance.OneIn(5);
      parameter.set_dtype(chance.OneOf(is_carried ? kCarried : kArithmetic));
      parameter.set_frozen(is_carried || chance.OneIn(4));
    }
    parameter.set_name(absl::StrCat(unit.name(), ".", i, Ending(chance)));
    const bool is_ignored = parameter.name().ends_with(kIgnoredEnding);
    if (!is_ignored && parameter.alias_of().empty()) tieable.push_back(parameter);
  }
}

}  // namespace

v1::ModelSpec RandomSpec(std::mt19937_64& random, int32_t world) {
  Chance chance(random);
  v1::ModelSpec spec;
  spec.set_name("random");
  SetMesh(chance, world, *spec.mutable_mesh());
  if (!chance.OneIn(4)) {
    spec.mutable_precision()->set_param(DTypeOrDefault(chance));
    spec.mutable_precision()->set_reduce(DTypeOrDefault(chance));
    spec.mutable_precision()->set_master(DTypeOrDefault(chance));
    spec.mutable_precision()->set_buffer(DTypeOrDefault(chance));
  }
  std::vector<v1::ParameterSpec> tieable;
  const int num_units = 1 + chance.Below(5);
  for (int i = 0; i < num_units; ++i) {
    v1::UnitSpec& unit = *spec.add_units();
    unit.set_name(absl::StrCat("u", i));
    AddParameters(chance, tieable, unit);
    const int num_buffers = chance.Below(3);
    for (int k = 0; k < num_buffers; ++k) {
      v1::BufferSpec& buffer = *unit.add_buffers();
      buffer.set_name(absl::StrCat(unit.name(), ".buffer.", k, Ending(chance)));
      SetShape(chance, buffer);
      buffer.set_dtype(chance.OneOf(chance.OneIn(2) ? kCarried : kArithmetic));
    }
  }
  const int num_emas = chance.Below(4);
  for (int i = 0; i < num_emas; ++i) {
    v1::EmaSpec& ema = *spec.add_emas();
    ema.set_name(absl::StrCat("ema", i));
    ema.set_dtype(CopyDType(chance));
    ema.mutable_constant()->set_decay(0.9);
  }
  const int num_states = chance.Below(4);
  for (int i = 0; i < num_states; ++i) {
    v1::OptimizerStateSpec& state = *spec.mutable_optimizer()->mutable_worker()->add_states();
    state.set_name(absl::StrCat("state", i));
    state.set_dtype(CopyDType(chance));
  }
  spec.add_ignored_parameters(absl::StrCat("*", std::string(kIgnoredEnding)));
  spec.set_gather_slots(static_cast<uint32_t>(chance.Below(5)));
  spec.set_gradient_slots(static_cast<uint32_t>(chance.Below(5)));
  spec.set_update_protection(static_cast<v1::UpdateProtection>(chance.Below(3)));
  return spec;
}

}  // namespace holdfast
