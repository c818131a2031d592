#include "common/spec_difference.h"

#include <functional>
#include <string>

#include "common/layout.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "tests/common/sample_spec.h"

namespace holdfast {
namespace {

struct Case {
  std::string name;
  std::function<void(v1::ModelSpec&)> change;
  // "" if the two mean the same.
  std::string difference;
};

class SpecDifferenceTest : public testing::TestWithParam<Case> {};

std::vector<Case> Cases() {
  using Spec = v1::ModelSpec;
  return {
      {"Nothing", [](Spec&) {}, ""},
      {"Name", [](Spec& s) { s.set_name("other"); }, R"(name: registered "sample", asked "other")"},
      {"Shape", [](Spec& s) { s.mutable_units(1)->mutable_parameters(0)->set_shape(1, 128); },
       "units[1].parameters[0].shape[1]: registered 4, asked 128"},
      {"LongerShape", [](Spec& s) { s.mutable_units(1)->mutable_parameters(1)->add_shape(1); },
       "units[1].parameters[1].shape[1]: registered none, asked 1"},
      {"ShorterShape", [](Spec& s) { s.mutable_units(1)->mutable_parameters(1)->clear_shape(); },
       "units[1].parameters[1].shape[0]: registered 4, asked none"},
      {"DType", [](Spec& s) { s.mutable_units(0)->mutable_buffers(0)->set_dtype(v1::DATA_TYPE_INT32); },
       "units[0].buffers[0].dtype: registered DATA_TYPE_INT64, asked DATA_TYPE_INT32"},
      {"Frozen", [](Spec& s) { s.mutable_units(1)->mutable_parameters(1)->set_frozen(true); },
       "units[1].parameters[1].frozen: registered false, asked true"},
      {"Thawed", [](Spec& s) { s.mutable_units(1)->mutable_parameters(2)->clear_frozen(); },
       "units[1].parameters[2].frozen: registered true, asked false"},
      {"Untied", [](Spec& s) { s.mutable_units(2)->mutable_parameters(0)->clear_alias_of(); },
       R"(units[2].parameters[0].alias_of: registered "embed.weight", asked "")"},
      {"OneParameterMore", [](Spec& s) { AddParameter(*s.mutable_units(0), "embed.extra", {2}); },
       R"(units[0].parameters[1]: registered none, asked "embed.extra")"},
      {"OneUnitLess", [](Spec& s) { s.mutable_units()->RemoveLast(); }, R"(units[2]: registered "head", asked none)"},
      {"Order", [](Spec& s) { s.mutable_units()->SwapElements(0, 1); },
       R"(units[0].name: registered "embed", asked "block")"},
      {"Strategy", [](Spec& s) { s.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_SHARD_GRAD_OP); },
       "mesh.strategy: registered SHARDING_STRATEGY_FULL_SHARD, asked SHARDING_STRATEGY_SHARD_GRAD_OP"},
      {"Precision", [](Spec& s) { s.mutable_precision()->set_param(v1::DATA_TYPE_FLOAT32); },
       "precision.param: registered DATA_TYPE_BFLOAT16, asked DATA_TYPE_FLOAT32"},
      {"NoPrecision", [](Spec& s) { s.clear_precision(); },
       "precision.param: registered DATA_TYPE_BFLOAT16, asked DATA_TYPE_UNSPECIFIED"},
      {"Decay", [](Spec& s) { s.mutable_emas(0)->mutable_constant()->set_decay(0.5); },
       "emas[0].constant.decay: registered 0.999, asked 0.5"},
      {"Schedule", [](Spec& s) { s.mutable_emas(0)->mutable_warmup()->set_decay(0.999); },
       "emas[0].schedule: registered constant, asked warmup"},
      {"NoOptimizer", [](Spec& s) { s.clear_optimizer(); }, "optimizer.kind: registered worker, asked none"},
      {"StateDType",
       [](Spec& s) { s.mutable_optimizer()->mutable_worker()->mutable_states(0)->set_dtype(v1::DATA_TYPE_FLOAT64); },
       "optimizer.worker.states[0].dtype: registered DATA_TYPE_UNSPECIFIED, asked DATA_TYPE_FLOAT64"},
      {"Ignored", [](Spec& s) { s.add_ignored_parameters("nothing.*"); },
       R"(ignored_parameters[0]: registered none, asked "nothing.*")"},
      {"GatherSlots", [](Spec& s) { s.set_gather_slots(5); }, "gather_slots: registered 3, asked 5"},
      {"Protection", [](Spec& s) { s.set_update_protection(v1::UPDATE_PROTECTION_NONE); },
       "update_protection: registered UPDATE_PROTECTION_UNDO_COPY, asked UPDATE_PROTECTION_NONE"},
      {"TheFirstOfTwo",
       [](Spec& s) {
         s.set_gather_slots(9);
         s.mutable_units(2)->set_name("tail");
       },
       R"(units[2].name: registered "head", asked "tail")"},
      {"LongName", [](Spec& s) { s.mutable_units(2)->set_name(std::string(1000, 'x')); },
       R"(units[2].name: registered "head", asked ")" + std::string(128, 'x') + "…\""},
      {"DefaultsSpelledOut",
       [](Spec& s) {
         s.mutable_mesh()->set_num_replicate(1);
         s.mutable_mesh()->set_num_shard(2);
         s.set_gather_slots(3);
         s.set_gradient_slots(2);
         s.set_update_protection(v1::UPDATE_PROTECTION_UNDO_COPY);
         s.mutable_emas(0)->set_dtype(v1::DATA_TYPE_FLOAT32);
         s.mutable_emas(0)->set_update_every(1);
       },
       ""},
      // What a client of a later version may send.
      {"UnknownField",
       [](Spec& s) {
         v1::UnitSpec& unit = *s.mutable_units(1);
         unit.GetReflection()->MutableUnknownFields(&unit)->AddVarint(99, 7);
       },
       "units[1].(field 99, which this version does not know): registered none, asked some value"},
  };
}

TEST_P(SpecDifferenceTest, FirstDifference_NamesFieldAndBothValues) {
  v1::ModelSpec asked = SampleSpec();
  GetParam().change(asked);
  const absl::StatusOr<ModelLayout> registered_layout = ModelLayout::Create(SampleSpec(), 2);
  const absl::StatusOr<ModelLayout> asked_layout = ModelLayout::Create(asked, 2);
  ASSERT_TRUE(registered_layout.ok());
  // Specs that are refused are compared as they are.
  EXPECT_EQ(FirstDifference(registered_layout->spec(), asked_layout.ok() ? asked_layout->spec() : asked),
            GetParam().difference);
}

INSTANTIATE_TEST_SUITE_P(Fields, SpecDifferenceTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(SpecDifferenceOfEmptyMessagesTest, AnEmptyMessageIsNoDifference) {
  v1::ModelSpec plain = SampleSpec();
  plain.clear_precision();
  plain.clear_optimizer();
  v1::ModelSpec empty = plain;
  empty.mutable_precision();
  empty.mutable_optimizer()->mutable_worker();
  EXPECT_EQ(FirstDifference(ModelLayout::Create(plain, 2)->spec(), ModelLayout::Create(empty, 2)->spec()), "");
}

}  // namespace
}  // namespace holdfast
