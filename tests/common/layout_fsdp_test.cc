// Against the real thing: fsdp_shards.h has the shards that torch.distributed.fsdp's FlatParamHandle made of modules
// whose parameter p has the elements 100·(p + 1), 100·(p + 1) + 1, … ; padding is 0.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/layout.h"
#include "common/shard_ranges.h"
#include "gtest/gtest.h"
#include "tests/common/fsdp_shards.h"
#include "tests/common/sample_spec.h"

namespace holdfast {
namespace {

std::string ParameterName(size_t index) { return absl::StrCat("p", index); }

v1::ModelSpec SpecOf(const FsdpShards& fsdp) {
  v1::ModelSpec spec;
  spec.set_name("fsdp");
  spec.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_FULL_SHARD);
  v1::UnitSpec& unit = *spec.add_units();
  unit.set_name("root");
  for (size_t p = 0; p < fsdp.shapes.size(); ++p) {
    v1::ParameterSpec& parameter = AddParameter(unit, ParameterName(p), fsdp.shapes[p]);
    if (fsdp.tied_to[p] >= 0) parameter.set_alias_of(ParameterName(static_cast<size_t>(fsdp.tied_to[p])));
  }
  return spec;
}

class LayoutFsdpTest : public testing::TestWithParam<FsdpShards> {};

TEST_P(LayoutFsdpTest, Shards_AsTorchMakesThem) {
  const FsdpShards& fsdp = GetParam();
  const absl::StatusOr<ModelLayout> layout =
      ModelLayout::Create(SpecOf(fsdp), static_cast<int32_t>(fsdp.shards.size()));
  ASSERT_TRUE(layout.ok()) << layout.status();
  ASSERT_EQ(layout->units()[0].flat_parameters.size(), 1u);
  const FlatParameter& flat = layout->units()[0].flat_parameters[0];
  std::vector<std::vector<int>> shards(fsdp.shards.size(), std::vector<int>(static_cast<size_t>(flat.shard_elements)));
  for (const ParameterLayout& parameter : flat.parameters) {
    const int first = 100 * (std::stoi(parameter.name.substr(1)) + 1);
    for (const ShardRange& range : ShardRangesOf(parameter, flat.shard_elements)) {
      for (int64_t i = 0; i < range.num_elements; ++i) {
        shards.at(static_cast<size_t>(range.shard)).at(static_cast<size_t>(range.shard_begin + i)) =
            first + static_cast<int>(range.parameter_begin + i);
      }
    }
  }
  EXPECT_EQ(shards, fsdp.shards);
}

INSTANTIATE_TEST_SUITE_P(Torch, LayoutFsdpTest, testing::ValuesIn(AllFsdpShards()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace holdfast
