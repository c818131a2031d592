// Every rule that a spec must keep, through ModelLayout::Create: the code, and a message that names field and value.
#include "common/spec_validation.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/sample_spec.h"

namespace holdfast {
namespace {

using Spec = v1::ModelSpec;

struct BadSpec {
  std::string name;
  std::function<void(Spec&)> spoil;
  // Of the message.
  std::string part;
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

v1::ParameterSpec& First(Spec& spec) { return *spec.mutable_units(0)->mutable_parameters(0); }
v1::ParameterSpec& Tied(Spec& spec) { return *spec.mutable_units(2)->mutable_parameters(0); }
v1::WorkerOptimizer& Worker(Spec& spec) { return *spec.mutable_optimizer()->mutable_worker(); }

std::vector<BadSpec> BadNames() {
  return {
      {"ModelNameEmpty", [](Spec& s) { s.clear_name(); }, "spec.name: ''; 1 to 128 letters"},
      {"ModelNameLong", [](Spec& s) { s.set_name(std::string(129, 'x')); }, "(129 bytes); 1 to 128 letters"},
      {"ModelNameWithSlash", [](Spec& s) { s.set_name("../etc"); }, "spec.name: '../etc'"},
      {"ModelNameWithNewline", [](Spec& s) { s.set_name("a\nb"); }, "spec.name: 'a\\nb'"},
      {"ModelNameOfOtherLetters", [](Spec& s) { s.set_name("größe"); }, "spec.name: 'größe'"},
      {"NoUnits", [](Spec& s) { s.clear_units(); }, "spec.units: 0 units; 1 to 65536"},
      {"TooManyUnits",
       [](Spec& s) {
         for (int i = 0; i < 65536; ++i) s.add_units()->set_name(absl::StrCat("u", i));
       },
       "spec.units: 65539 units; 1 to 65536"},
      {"UnitNameEmpty", [](Spec& s) { s.mutable_units(1)->clear_name(); },
       "spec.units[1].name: ''; 1 to 1024 bytes are valid"},
      {"UnitNameLong", [](Spec& s) { s.mutable_units(1)->set_name(std::string(1025, 'u')); },
       "(1025 bytes); 1 to 1024 bytes are valid"},
      {"UnitNameTwice", [](Spec& s) { s.mutable_units(2)->set_name("embed"); },
       "spec.units[2].name: 'embed'; another unit has that name"},
      {"ParameterNameEmpty", [](Spec& s) { First(s).clear_name(); },
       "spec.units[0].parameters[0].name: ''; 1 to 1024 bytes are valid"},
      {"ParameterNameLong", [](Spec& s) { First(s).set_name(std::string(1025, 'p')); }, "(1025 bytes)"},
      {"ParameterNameTwiceInAUnit",
       [](Spec& s) { s.mutable_units(1)->mutable_parameters(1)->set_name("block.weight"); },
       "spec.units[1].parameters[1].name: 'block.weight'; another parameter or buffer has that name"},
      {"ParameterNameTwiceInTwoUnits",
       [](Spec& s) { s.mutable_units(2)->mutable_parameters(1)->set_name("block.bias"); },
       "spec.units[2].parameters[1].name: 'block.bias'; another parameter or buffer"},
      {"AliasNameTwice", [](Spec& s) { Tied(s).set_name("embed.weight"); },
       "spec.units[2].parameters[0].name: 'embed.weight'; another parameter or buffer"},
      {"BufferNameOfAParameter", [](Spec& s) { s.mutable_units(1)->mutable_buffers(0)->set_name("embed.weight"); },
       "spec.units[1].buffers[0].name: 'embed.weight'; another parameter or buffer"},
      {"BufferNameTwice", [](Spec& s) { s.mutable_units(1)->mutable_buffers(0)->set_name("embed.positions"); },
       "spec.units[1].buffers[0].name: 'embed.positions'"},
      {"BufferNameEmpty", [](Spec& s) { s.mutable_units(0)->mutable_buffers(0)->clear_name(); },
       "spec.units[0].buffers[0].name: ''"},
      {"IgnoredNameTwice",
       [](Spec& s) {
         s.add_ignored_parameters("embed.*");
         s.mutable_units(0)->mutable_buffers(0)->set_name("embed.weight");
         Tied(s).clear_alias_of();
       },
       "spec.units[0].buffers[0].name: 'embed.weight'; another parameter or buffer"},
      {"GlobEmpty", [](Spec& s) { s.add_ignored_parameters(""); }, "spec.ignored_parameters[0]: ''; 1 to 1024"},
      {"GlobLong", [](Spec& s) { s.add_ignored_parameters(std::string(1025, '*')); }, "(1025 bytes); 1 to 1024"},
      {"TooManyGlobs",
       [](Spec& s) {
         for (int i = 0; i < 257; ++i) s.add_ignored_parameters("x");
       },
       "spec.ignored_parameters: 257 globs; at most 256"},
  };
}

std::vector<BadSpec> BadTensors() {
  return {
      {"DTypeMissing", [](Spec& s) { First(s).clear_dtype(); },
       "spec.units[0].parameters[0].dtype: that of 'embed.weight' is DATA_TYPE_UNSPECIFIED"},
      {"DTypeUnknown", [](Spec& s) { First(s).set_dtype(static_cast<v1::DataType>(13)); },
       "parameters[0].dtype: that of 'embed.weight' is 13; a DataType is required"},
      {"DTypeNegative", [](Spec& s) { First(s).set_dtype(static_cast<v1::DataType>(-1)); }, "is -1; a DataType"},
      {"BufferDTypeMissing", [](Spec& s) { s.mutable_units(0)->mutable_buffers(0)->clear_dtype(); },
       "spec.units[0].buffers[0].dtype: that of 'embed.positions' is DATA_TYPE_UNSPECIFIED"},
      {"TrainedInt64", [](Spec& s) { First(s).set_dtype(v1::DATA_TYPE_INT64); },
       "parameters[0].dtype: 'embed.weight' is int64; only float32, bfloat16, float16 and float64 can be trained"},
      {"TrainedFloat8", [](Spec& s) { s.mutable_units(1)->mutable_parameters(3)->clear_frozen(); },
       "spec.units[1].parameters[3].dtype: 'block.codes' is float8_e4m3fn"},
      {"TrainedBool", [](Spec& s) { First(s).set_dtype(v1::DATA_TYPE_BOOL); }, "'embed.weight' is bool"},
      {"LengthNegative", [](Spec& s) { First(s).set_shape(1, -1); },
       "spec.units[0].parameters[0].shape[1]: -1; a length can't be negative"},
      {"LengthNegativeBesideZero",
       [](Spec& s) {
         SetShape(First(s), {0, -5});
       },
       "parameters[0].shape[1]: -5"},
      {"LengthLowest", [](Spec& s) { First(s).set_shape(0, std::numeric_limits<int64_t>::min()); },
       "shape[0]: -9223372036854775808"},
      {"BufferLengthNegative", [](Spec& s) { s.mutable_units(0)->mutable_buffers(0)->set_shape(0, -7); },
       "spec.units[0].buffers[0].shape[0]: -7"},
      {"SixtyFiveDimensions", [](Spec& s) { SetShape(First(s), std::vector<int64_t>(65, 1)); },
       "spec.units[0].parameters[0].shape: 65 dimensions; at most 64"},
      {"ProductOverflows",
       [](Spec& s) {
         SetShape(First(s), {int64_t{1} << 32, int64_t{1} << 32});
       },
       "'embed.weight' of [4294967296, 4294967296] is larger than 2^46 bytes"},
      {"ProductWrapsToSomethingSmall",
       [](Spec& s) {
         SetShape(First(s), {int64_t{1} << 62, 4, 3});
       },
       "larger than 2^46 bytes"},
      {"SixtyFourLargeDimensions", [](Spec& s) { SetShape(First(s), std::vector<int64_t>(64, kLargest)); },
       "larger than 2^46 bytes"},
      {"BytesOverflow", [](Spec& s) { SetShape(First(s), {kLargest}); }, "of [9223372036854775807] is larger"},
      {"OneElementTooLarge", [](Spec& s) { SetShape(First(s), {(int64_t{1} << 44) + 1}); }, "larger than 2^46 bytes"},
      {"StridesOverflowThoughEmpty",
       [](Spec& s) {
         SetShape(First(s), {0, kLargest, 3});
       },
       "larger than 2^46 bytes"},
      {"BufferTooLarge", [](Spec& s) { s.mutable_units(0)->mutable_buffers(0)->set_shape(0, int64_t{1} << 44); },
       "spec.units[0].buffers[0].shape: 'embed.positions' of [17592186044416]"},
      {"ManyElements",
       [](Spec& s) {
         for (int i = 0; i < 2; ++i) {
           AddParameter(*s.mutable_units(0), absl::StrCat("big", i), {int64_t{1} << 45}, v1::DATA_TYPE_INT8)
               .set_frozen(true);
         }
       },
       "spec.units[0].parameters[2]: with its 35184372088832 elements the model has 70368744177679; at most 2^46"},
      {"ArenaTooLarge",
       [](Spec& s) {
         for (int i = 0; i < 5; ++i) {
           AddParameter(*s.mutable_units(0), absl::StrCat("big", i), {int64_t{1} << 42}, v1::DATA_TYPE_FLOAT64);
         }
         s.mutable_precision()->set_master(v1::DATA_TYPE_FLOAT64);
         s.mutable_precision()->set_reduce(v1::DATA_TYPE_FLOAT64);
       },
       "spec.units[0]: with its 10995116277760 elements an arena would be larger than 2^46 bytes"},
      {"BuffersTooLarge",
       [](Spec& s) {
         for (int i = 0; i < 3; ++i) {
           v1::BufferSpec& buffer = *s.mutable_units(0)->add_buffers();
           buffer.set_name(absl::StrCat("big", i));
           buffer.set_dtype(v1::DATA_TYPE_UINT8);
           buffer.add_shape(int64_t{1} << 45);
         }
       },
       "spec.units[0].buffers[2]: with its 35184372088832 elements an arena would be larger"},
      // Each arena is within the limit.
      {"RankTooLarge", [](Spec& s) { SetShape(*s.mutable_units(2)->mutable_parameters(1), {int64_t{1} << 43}); },
       "spec: each rank of model 'sample' would need"},
      {"SlotsTooLarge",
       [](Spec& s) {
         SetShape(*s.mutable_units(2)->mutable_parameters(1), {int64_t{1} << 38});
         s.set_gather_slots(256);
       },
       "at most 2^46 are possible; shard over more ranks or use fewer slots"},
  };
}

std::vector<BadSpec> BadAliases() {
  return {
      {"AliasOfUnknown", [](Spec& s) { Tied(s).set_alias_of("nothing"); },
       "spec.units[2].parameters[0].alias_of: 'nothing'; it must name an earlier parameter"},
      {"AliasOfLater", [](Spec& s) { Tied(s).set_alias_of("head.bias"); }, "alias_of: 'head.bias'"},
      {"AliasOfItself", [](Spec& s) { Tied(s).set_alias_of("head.weight"); }, "alias_of: 'head.weight'"},
      {"AliasOfAnAlias",
       [](Spec& s) {
         AddParameter(*s.mutable_units(2), "third", {5, 3}).set_alias_of("head.weight");
       },
       "spec.units[2].parameters[2].alias_of: 'head.weight'"},
      {"AliasOfABuffer", [](Spec& s) { Tied(s).set_alias_of("embed.positions"); }, "alias_of: 'embed.positions'"},
      {"AliasOfIgnored", [](Spec& s) { s.add_ignored_parameters("embed.*"); },
       "alias_of: 'embed.weight'; it must name an earlier parameter of the model that is neither an alias nor ignored"},
      {"AliasOfOtherShape", [](Spec& s) { Tied(s).set_shape(0, 3); },
       "alias_of: 'embed.weight' differs from 'head.weight'; shape, dtype and frozen"},
      // As many elements, even in the same places.
      {"AliasOfTransposed",
       [](Spec& s) {
         SetShape(Tied(s), {3, 5});
       },
       "'embed.weight' differs from 'head.weight'"},
      {"AliasOfFewerDimensions", [](Spec& s) { SetShape(Tied(s), {15}); }, "'embed.weight' differs from"},
      {"AliasOfOtherDType", [](Spec& s) { Tied(s).set_dtype(v1::DATA_TYPE_FLOAT64); }, "'embed.weight' differs from"},
      {"AliasOfTrainedIsFrozen", [](Spec& s) { Tied(s).set_frozen(true); }, "'embed.weight' differs from"},
      {"AliasOfMegabytes", [](Spec& s) { Tied(s).set_alias_of(std::string(1 << 20, 'x')); },
       "xxx…' (1048576 bytes); it must name"},
  };
}

std::vector<BadSpec> BadMeshes() {
  return {
      {"NoMesh", [](Spec& s) { s.clear_mesh(); }, "spec.mesh.strategy: 0; FULL_SHARD (1)"},
      {"StrategyUnknown", [](Spec& s) { s.mutable_mesh()->set_strategy(static_cast<v1::ShardingStrategy>(5)); },
       "spec.mesh.strategy: 5"},
      {"FullShardOfOtherWorld", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_FULL_SHARD, 0, 4); },
       "spec.mesh: 0 × 4 (num_replicate × num_shard); SHARDING_STRATEGY_FULL_SHARD over 2 ranks is 1 × 2"},
      {"FullShardWithReplicas", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_FULL_SHARD, 2, 1); },
       "over 2 ranks is 1 × 2"},
      {"ShardGradOpWithReplicas", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_SHARD_GRAD_OP, 2, 0); }, "is 1 × 2"},
      {"NoShardWithShards", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_NO_SHARD, 0, 2); }, "over 2 ranks is 2 × 1"},
      {"HybridWithoutNumbers", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_HYBRID_SHARD, 0, 0); },
       "spec.mesh: 0 × 0 (num_replicate × num_shard); the product must be the number of ranks, 2"},
      {"HybridWithOneNumber", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_HYBRID_SHARD, 2, 0); }, "2 × 0"},
      {"HybridTooLarge", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_HYBRID_SHARD, 2, 2); }, "2 × 2"},
      // It would wrap to 2 in 32 bits.
      {"HybridOverflows", [](Spec& s) { SetMesh(s, v1::SHARDING_STRATEGY_HYBRID_SHARD, 0x80000001, 2); },
       "2147483649 × 2"},
  };
}

std::vector<BadSpec> BadNumbers() {
  return {
      {"PrecisionInt8", [](Spec& s) { s.mutable_precision()->set_param(v1::DATA_TYPE_INT8); },
       "spec.precision.param: DATA_TYPE_INT8; unspecified, FLOAT32, BFLOAT16, FLOAT16 and FLOAT64 are valid"},
      {"PrecisionFloat8", [](Spec& s) { s.mutable_precision()->set_reduce(v1::DATA_TYPE_FLOAT8_E5M2); },
       "spec.precision.reduce: DATA_TYPE_FLOAT8_E5M2"},
      {"PrecisionUnknown", [](Spec& s) { s.mutable_precision()->set_master(static_cast<v1::DataType>(77)); },
       "spec.precision.master: 77"},
      {"PrecisionBool", [](Spec& s) { s.mutable_precision()->set_buffer(v1::DATA_TYPE_BOOL); },
       "spec.precision.buffer: DATA_TYPE_BOOL"},
      {"EmaNameEmpty", [](Spec& s) { s.mutable_emas(0)->clear_name(); }, "spec.emas[0].name: ''; 1 to 64 letters"},
      {"EmaNameWithDot", [](Spec& s) { s.mutable_emas(0)->set_name("a.b"); }, "spec.emas[0].name: 'a.b'"},
      {"EmaNameLong", [](Spec& s) { s.mutable_emas(0)->set_name(std::string(65, 'e')); }, "1 to 64 letters"},
      {"EmaNameTwice", [](Spec& s) { s.mutable_emas(1)->set_name("slow"); },
       "spec.emas[1].name: 'slow'; another EMA has that name"},
      {"EmaInteger", [](Spec& s) { s.mutable_emas(0)->set_dtype(v1::DATA_TYPE_INT32); },
       "spec.emas[0].dtype: DATA_TYPE_INT32; unspecified, FLOAT32, FLOAT64 and BFLOAT16 are valid"},
      {"EmaFloat16", [](Spec& s) { s.mutable_emas(0)->set_dtype(v1::DATA_TYPE_FLOAT16); }, "DATA_TYPE_FLOAT16"},
      {"EmaDTypeUnknown", [](Spec& s) { s.mutable_emas(0)->set_dtype(static_cast<v1::DataType>(50)); },
       "spec.emas[0].dtype: 50"},
      {"EmaWithoutSchedule", [](Spec& s) { s.mutable_emas(1)->clear_schedule(); },
       "spec.emas[1]: no schedule is set; one of constant, warmup and power_function is required"},
      {"DecayOne", [](Spec& s) { s.mutable_emas(0)->mutable_constant()->set_decay(1); },
       "spec.emas[0].constant.decay: 1; it must be at least 0 and less than 1"},
      {"DecayNegative", [](Spec& s) { s.mutable_emas(0)->mutable_constant()->set_decay(-1e-9); }, "decay: -1e-09"},
      {"DecayNotANumber", [](Spec& s) { s.mutable_emas(0)->mutable_constant()->set_decay(kNan); },
       "spec.emas[0].constant.decay: nan"},
      {"DecayInfinite", [](Spec& s) { s.mutable_emas(1)->mutable_warmup()->set_decay(kInfinity); },
       "spec.emas[1].warmup.decay: inf"},
      {"NoWidth", [](Spec& s) { s.mutable_emas(0)->mutable_power_function(); },
       "spec.emas[0].power_function: neither gamma nor sigma_rel is set"},
      {"GammaZero", [](Spec& s) { s.mutable_emas(0)->mutable_power_function()->set_gamma(0); },
       "spec.emas[0].power_function.gamma: 0; it must be above 0"},
      {"GammaNotANumber", [](Spec& s) { s.mutable_emas(0)->mutable_power_function()->set_gamma(kNan); }, "gamma: nan"},
      {"GammaInfinite", [](Spec& s) { s.mutable_emas(0)->mutable_power_function()->set_gamma(kInfinity); },
       "gamma: inf"},
      {"SigmaZero", [](Spec& s) { s.mutable_emas(0)->mutable_power_function()->set_sigma_rel(0); }, "sigma_rel: 0;"},
      {"SigmaTooWide", [](Spec& s) { s.mutable_emas(0)->mutable_power_function()->set_sigma_rel(0.2886); },
       "spec.emas[0].power_function.sigma_rel: 0.2886; it must be"},
      {"SigmaNotANumber", [](Spec& s) { s.mutable_emas(0)->mutable_power_function()->set_sigma_rel(kNan); },
       "sigma_rel: nan"},
      {"SeventeenEmas",
       [](Spec& s) {
         for (int i = 0; i < 15; ++i) {
           *s.add_emas() = s.emas(0);
           s.mutable_emas(i + 2)->set_name(absl::StrCat("e", i));
         }
       },
       "spec.emas: 17 copies; at most 16"},
      {"NineStates",
       [](Spec& s) {
         for (int i = 0; i < 7; ++i) Worker(s).add_states()->set_name(absl::StrCat("s", i));
       },
       "spec.optimizer.worker.states: 9 states; at most 8"},
      {"StateNameEmpty", [](Spec& s) { Worker(s).mutable_states(1)->clear_name(); },
       "spec.optimizer.worker.states[1].name: ''"},
      {"StateNameWithHyphen", [](Spec& s) { Worker(s).mutable_states(0)->set_name("exp-avg"); },
       "states[0].name: 'exp-avg'; 1 to 64 letters, digits and '_' are valid"},
      {"StateNameTwice", [](Spec& s) { Worker(s).mutable_states(1)->set_name("exp_avg"); },
       "states[1].name: 'exp_avg'; another state has that name"},
      {"StateFloat16", [](Spec& s) { Worker(s).mutable_states(0)->set_dtype(v1::DATA_TYPE_FLOAT16); },
       "spec.optimizer.worker.states[0].dtype: DATA_TYPE_FLOAT16"},
      {"GatherSlots", [](Spec& s) { s.set_gather_slots(257); }, "spec.gather_slots: 257; 1 to 256, or 0"},
      {"GradientSlots", [](Spec& s) { s.set_gradient_slots(4294967295); }, "spec.gradient_slots: 4294967295"},
      {"Protection", [](Spec& s) { s.set_update_protection(static_cast<v1::UpdateProtection>(3)); },
       "spec.update_protection: 3; UPDATE_PROTECTION_UNDO_COPY (1)"},
      {"UnitsOfShardGradOp",
       [](Spec& s) {
         SetMesh(s, v1::SHARDING_STRATEGY_SHARD_GRAD_OP, 0, 0);
         for (int i = 0; i < 254; ++i) {
           v1::UnitSpec& unit = *s.add_units();
           unit.set_name(absl::StrCat("u", i));
           AddParameter(unit, absl::StrCat("p", i), {1});
         }
       },
       "spec.gather_slots: SHARD_GRAD_OP would keep 257 units gathered; at most 256 are possible; give a number"},
  };
}

std::vector<BadSpec> BadSpecs() {
  std::vector<BadSpec> all;
  for (const auto& table : {BadNames(), BadTensors(), BadAliases(), BadMeshes(), BadNumbers()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

class BadSpecTest : public testing::TestWithParam<BadSpec> {};

TEST_P(BadSpecTest, Create_IsRefused_NamingTheField) {
  Spec spec = SampleSpec();
  ASSERT_TRUE(ModelLayout::Create(spec, 2).ok());
  GetParam().spoil(spec);
  const absl::Status status = ModelLayout::Create(spec, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr(GetParam().part));
  EXPECT_THAT(std::string(status.message()), testing::StartsWith("spec"));
  // It fits in the trailing metadata of an answer (8 KiB).
  EXPECT_LT(status.message().size(), 4096u);
}

INSTANTIATE_TEST_SUITE_P(Table, BadSpecTest, testing::ValuesIn(BadSpecs()),
                         [](const auto& info) { return info.param.name; });

TEST(SpecValidationTest, Create_NoRanks_IsRefused) {
  for (const int32_t world : {0, -1}) {
    EXPECT_EQ(ModelLayout::Create(SampleSpec(), world).status().code(), absl::StatusCode::kInvalidArgument);
    Spec hybrid = SampleSpec();
    SetMesh(hybrid, v1::SHARDING_STRATEGY_HYBRID_SHARD, 0, 0);
    EXPECT_THAT(ModelLayout::Create(hybrid, world).status().message(), testing::HasSubstr("world: "));
  }
}

TEST(SpecValidationTest, Create_GlobsMadeToTakeHours_AreRefused) {
  Spec spec = SampleSpec();
  for (int i = 0; i < 256; ++i) spec.add_ignored_parameters(absl::StrCat("*", std::string(500, 'a'), "b", i, "*"));
  for (int i = 0; i < 1000; ++i) {
    AddParameter(*spec.mutable_units(0), absl::StrCat(std::string(1000, 'a'), i), {1});
  }
  const absl::Status status = ModelLayout::Create(spec, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr("spec.ignored_parameters: finding what they match takes too long"));
}

}  // namespace
}  // namespace holdfast
