// Specs that contradict themselves, through the wire. (The layout has a table of its own in tests/common.)
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/integration/bad_input_world.h"

namespace holdfast {
namespace {

// RegisterModel of a new, right spec that `change` spoils.
std::function<grpc::Status(BadInputWorld&)> Register(const std::function<void(v1::ModelSpec&)>& change) {
  return [change](BadInputWorld& world) {
    v1::RegisterModelRequest request;
    *request.mutable_spec() = BadInputWorld::Spec("new");
    change(*request.mutable_spec());
    return CallOnce(world.stub(), &ParameterStub::RegisterModel, request);
  };
}

// The same for its first parameter, and for its EMA copy.
std::function<grpc::Status(BadInputWorld&)> Parameter(const std::function<void(v1::ParameterSpec&)>& change) {
  return Register([change](v1::ModelSpec& spec) { change(*spec.mutable_units(0)->mutable_parameters(0)); });
}
std::function<grpc::Status(BadInputWorld&)> Ema(const std::function<void(v1::EmaSpec&)>& change) {
  return Register([change](v1::ModelSpec& spec) { change(*spec.mutable_emas(0)); });
}

void Shape(v1::ParameterSpec& parameter, const std::vector<int64_t>& shape) {
  parameter.mutable_shape()->Clear();
  parameter.mutable_shape()->Add(shape.begin(), shape.end());
}

void Tie(v1::ModelSpec& spec, const std::string& name, const std::string& of) {
  v1::ParameterSpec& tied = *spec.mutable_units(3)->add_parameters();
  tied = spec.units(0).parameters(0);
  tied.set_name(name);
  tied.set_alias_of(of);
}

std::vector<BadCall> BadModels() {
  using enum absl::StatusCode;
  return {
      {"Spec_Empty", Register([](v1::ModelSpec& s) { s.Clear(); }), kInvalidArgument, "spec.name: ''"},
      {"Spec_BadName", Register([](v1::ModelSpec& s) { s.set_name("a/b"); }), kInvalidArgument, "spec.name: 'a/b'"},
      {"Spec_LongName", Register([](v1::ModelSpec& s) { s.set_name(std::string(129, 'x')); }), kInvalidArgument,
       "(129 bytes); 1 to 128 letters"},
      {"Spec_NoUnits", Register([](v1::ModelSpec& s) { s.clear_units(); }), kInvalidArgument, "spec.units: 0 units"},
      {"Spec_UnitWithoutName", Register([](v1::ModelSpec& s) { s.mutable_units(1)->clear_name(); }), kInvalidArgument,
       "spec.units[1].name"},
      {"Spec_TwoUnitsOfOneName", Register([](v1::ModelSpec& s) { s.mutable_units(1)->set_name("a"); }),
       kInvalidArgument, "spec.units[1].name: 'a'; another unit has that name"},
      {"Spec_NoMesh", Register([](v1::ModelSpec& s) { s.clear_mesh(); }), kInvalidArgument, "spec.mesh.strategy: 0"},
      {"Spec_UnknownStrategy",
       Register([](v1::ModelSpec& s) { s.mutable_mesh()->set_strategy(static_cast<v1::ShardingStrategy>(12)); }),
       kInvalidArgument, "spec.mesh.strategy: 12"},
      {"Spec_MeshOfOtherWorld", Register([](v1::ModelSpec& s) { s.mutable_mesh()->set_num_shard(8); }),
       kInvalidArgument, "over 2 ranks is 1 × 2"},
      {"Spec_HybridWithoutNumbers",
       Register([](v1::ModelSpec& s) { s.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_HYBRID_SHARD); }),
       kInvalidArgument, "the product must be the number of ranks, 2"},
      {"Spec_MeshThatOverflows", Register([](v1::ModelSpec& s) {
         s.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_HYBRID_SHARD);
         s.mutable_mesh()->set_num_replicate(0x80000001);
         s.mutable_mesh()->set_num_shard(2);
       }),
       kInvalidArgument, "the product must be the number of ranks, 2"},
      {"Spec_IntegerPrecision",
       Register([](v1::ModelSpec& s) { s.mutable_precision()->set_reduce(v1::DATA_TYPE_INT8); }), kInvalidArgument,
       "spec.precision.reduce: DATA_TYPE_INT8"},
      {"Spec_UnknownPrecision",
       Register([](v1::ModelSpec& s) { s.mutable_precision()->set_master(static_cast<v1::DataType>(77)); }),
       kInvalidArgument, "spec.precision.master: 77"},
      {"Spec_TooManyGatherSlots", Register([](v1::ModelSpec& s) { s.set_gather_slots(257); }), kInvalidArgument,
       "spec.gather_slots: 257"},
      {"Spec_TooManyGradientSlots", Register([](v1::ModelSpec& s) { s.set_gradient_slots(UINT32_MAX); }),
       kInvalidArgument, "spec.gradient_slots: 4294967295"},
      {"Spec_UnknownProtection",
       Register([](v1::ModelSpec& s) { s.set_update_protection(static_cast<v1::UpdateProtection>(9)); }),
       kInvalidArgument, "spec.update_protection: 9"},
      {"Spec_TooManyGlobs", Register([](v1::ModelSpec& s) {
         for (int i = 0; i < 257; ++i) s.add_ignored_parameters(absl::StrCat("*", i));
       }),
       kInvalidArgument, "spec.ignored_parameters: 257 globs"},
      {"Spec_TooManyStates", Register([](v1::ModelSpec& s) {
         for (int i = 0; i < 9; ++i) {
           s.mutable_optimizer()->mutable_worker()->add_states()->set_name(absl::StrCat("s", i));
         }
       }),
       kInvalidArgument, "states: 9 states"},
      {"Spec_StateWithBadName",
       Register([](v1::ModelSpec& s) { s.mutable_optimizer()->mutable_worker()->add_states()->set_name("exp avg"); }),
       kInvalidArgument, "states[0].name: 'exp avg'"},
      {"Spec_DoesNotFit", Parameter([](v1::ParameterSpec& p) { Shape(p, {int64_t{1} << 30}); }), kResourceExhausted,
       "the limit is 67108864 bytes"},
      {"Spec_OtherSpecOfThatName", Register([](v1::ModelSpec& s) {
         s.set_name("full");
         s.mutable_units(1)->mutable_parameters(0)->set_shape(1, 6);
       }),
       kAlreadyExists, "units[1].parameters[0].shape[1]: registered 5, asked 6"},
      {"Spec_OtherSlotsOfThatName", Register([](v1::ModelSpec& s) {
         s.set_name("full");
         s.set_gather_slots(3);
       }),
       kAlreadyExists, "gather_slots: registered 2, asked 3"},
      // A name of 60 MiB is refused, and not repeated in the answer; gRPC takes no message above 64 MiB.
      {"Spec_SixtyMebibytes",
       Register([](v1::ModelSpec& s) { s.mutable_units(0)->set_name(std::string(size_t{60} << 20, 'x')); }),
       kInvalidArgument, "(62914560 bytes); 1 to 1024 bytes are valid"},
      {"Spec_SeventyMebibytes",
       Register([](v1::ModelSpec& s) { s.mutable_units(0)->set_name(std::string(size_t{70} << 20, 'x')); }),
       kResourceExhausted, "larger than max"},
  };
}

std::vector<BadCall> BadTensors() {
  using enum absl::StatusCode;
  return {
      {"Parameter_WithoutName", Parameter([](v1::ParameterSpec& p) { p.clear_name(); }), kInvalidArgument,
       "spec.units[0].parameters[0].name: ''"},
      {"Parameter_LongName", Parameter([](v1::ParameterSpec& p) { p.set_name(std::string(1025, 'x')); }),
       kInvalidArgument, "(1025 bytes)"},
      {"Parameter_NameTwice", Parameter([](v1::ParameterSpec& p) { p.set_name("b.weight"); }), kInvalidArgument,
       "'b.weight'"},
      {"Parameter_WithoutDType", Parameter([](v1::ParameterSpec& p) { p.clear_dtype(); }), kInvalidArgument,
       "a DataType is required"},
      {"Parameter_UnknownDType", Parameter([](v1::ParameterSpec& p) { p.set_dtype(static_cast<v1::DataType>(99)); }),
       kInvalidArgument, "of 'a.weight' is 99"},
      {"Parameter_TrainedFloat8", Parameter([](v1::ParameterSpec& p) { p.set_dtype(v1::DATA_TYPE_FLOAT8_E4M3FN); }),
       kInvalidArgument, "only float32, bfloat16, float16 and float64 can be trained"},
      {"Parameter_NegativeLength", Parameter([](v1::ParameterSpec& p) {
         Shape(p, {3, -1});
       }),
       kInvalidArgument, "parameters[0].shape[1]: -1"},
      {"Parameter_TooManyDimensions", Parameter([](v1::ParameterSpec& p) { Shape(p, std::vector<int64_t>(65, 1)); }),
       kInvalidArgument, "65 dimensions"},
      {"Parameter_ShapeOverflows", Parameter([](v1::ParameterSpec& p) {
         Shape(p, {int64_t{1} << 40, int64_t{1} << 40});
       }),
       kInvalidArgument, "larger than 2^46 bytes"},
      {"Parameter_GreatestLength", Parameter([](v1::ParameterSpec& p) { Shape(p, {INT64_MAX}); }), kInvalidArgument,
       "larger than 2^46 bytes"},
      {"Parameters_SumOverflows", Register([](v1::ModelSpec& s) {
         for (v1::UnitSpec& unit : *s.mutable_units()) Shape(*unit.mutable_parameters(0), {int64_t{1} << 44});
       }),
       kInvalidArgument, "spec"},
      {"Alias_OfUnknown", Register([](v1::ModelSpec& s) { Tie(s, "tied", "nope"); }), kInvalidArgument,
       "alias_of: 'nope'; it must name an earlier parameter"},
      {"Alias_OfAlias", Register([](v1::ModelSpec& s) {
         Tie(s, "tied", "a.weight");
         Tie(s, "tied2", "tied");
       }),
       kInvalidArgument, "alias_of: 'tied'"},
      {"Alias_OfItself", Register([](v1::ModelSpec& s) { Tie(s, "tied", "tied"); }), kInvalidArgument,
       "alias_of: 'tied'"},
      {"Alias_OfOtherShape", Register([](v1::ModelSpec& s) {
         Tie(s, "tied", "a.weight");
         s.mutable_units(3)->mutable_parameters(1)->set_shape(0, 4);
       }),
       kInvalidArgument, "shape, dtype and frozen of tied weights must be the same"},
      {"Buffer_NameOfParameter", Register([](v1::ModelSpec& s) {
         v1::BufferSpec& buffer = *s.mutable_units(0)->add_buffers();
         buffer.set_name("a.weight");
         buffer.set_dtype(v1::DATA_TYPE_INT64);
       }),
       kInvalidArgument, "'a.weight'"},
      {"Buffer_WithoutDType", Register([](v1::ModelSpec& s) { s.mutable_units(0)->add_buffers()->set_name("n"); }),
       kInvalidArgument, "spec.units[0].buffers[0].dtype"},
      {"Ema_WithoutSchedule", Ema([](v1::EmaSpec& e) { e.clear_schedule(); }), kInvalidArgument,
       "spec.emas[0]: no schedule is set"},
      {"Ema_WithBadName", Ema([](v1::EmaSpec& e) { e.set_name("a.b"); }), kInvalidArgument, "spec.emas[0].name: 'a.b'"},
      {"Ema_DecayOne", Ema([](v1::EmaSpec& e) { e.mutable_constant()->set_decay(1); }), kInvalidArgument,
       "spec.emas[0].constant.decay: 1"},
      {"Ema_NegativeDecay", Ema([](v1::EmaSpec& e) { e.mutable_warmup()->set_decay(-0.5); }), kInvalidArgument,
       "spec.emas[0].warmup.decay: -0.5"},
      {"Ema_DecayNotANumber",
       Ema([](v1::EmaSpec& e) { e.mutable_constant()->set_decay(std::numeric_limits<double>::quiet_NaN()); }),
       kInvalidArgument, "spec.emas[0].constant.decay: nan"},
      {"Ema_NoWidth", Ema([](v1::EmaSpec& e) { e.mutable_power_function(); }), kInvalidArgument,
       "neither gamma nor sigma_rel is set"},
      {"Ema_SigmaTooWide", Ema([](v1::EmaSpec& e) { e.mutable_power_function()->set_sigma_rel(0.5); }),
       kInvalidArgument, "sigma_rel: 0.5"},
      {"Ema_InfiniteGamma",
       Ema([](v1::EmaSpec& e) { e.mutable_power_function()->set_gamma(std::numeric_limits<double>::infinity()); }),
       kInvalidArgument, "gamma: inf"},
      {"Ema_Float16", Ema([](v1::EmaSpec& e) { e.set_dtype(v1::DATA_TYPE_FLOAT16); }), kInvalidArgument,
       "spec.emas[0].dtype: DATA_TYPE_FLOAT16"},
      {"Ema_NameTwice", Register([](v1::ModelSpec& s) { *s.add_emas() = s.emas(0); }), kInvalidArgument,
       "spec.emas[1].name: 'slow'; another EMA has that name"},
      {"Emas_Seventeen", Register([](v1::ModelSpec& s) {
         for (int i = 0; i < 16; ++i) {
           *s.add_emas() = s.emas(0);
           s.mutable_emas(i + 1)->set_name(absl::StrCat("e", i));
         }
       }),
       kInvalidArgument, "spec.emas: 17 copies"},
  };
}

}  // namespace

std::vector<BadCall> BadSpecs() {
  std::vector<BadCall> table = BadModels();
  for (BadCall& bad : BadTensors()) table.push_back(std::move(bad));
  return table;
}

}  // namespace holdfast
