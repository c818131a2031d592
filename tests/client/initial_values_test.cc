#include "client/initial_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/mapped_memory.h"
#include "tests/client/test_rank_memory.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorsByName Values() {
  return {{"embed.weight", torch::arange(15, at::kFloat).view({5, 3})},
          {"norm.scale", torch::tensor(4.0F)},
          {"positions", torch::arange(4)},
          {"layer.weight", torch::arange(100, 110).to(at::kDouble).view({2, 5})},
          {"layer.none", torch::empty({0, 3})},
          {"layer.bias", torch::arange(200, 203).to(at::kHalf)},
          {"layer.mean", torch::ones({2, 2})}};
}

class InitialValuesTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ModelLayout> layout_ =
      std::make_shared<const ModelLayout>(*ModelLayout::Create(SmallModelSpec(), 2));
};

TEST_F(InitialValuesTest, Copy_EachRankGetsItsSliceAndZeroPadding) {
  const TensorsByName values = Values();
  std::vector<at::Tensor> root;
  std::vector<at::Tensor> layer;
  for (const Rank rank : {Rank(0), Rank(1)}) {
    TestRankMemory daemon(layout_, rank);
    const std::vector<UnitShards> shards =
        MakeShards(*MappedMemory::Map(layout_, rank, daemon.Hand(), daemon.arenas()));
    for (const UnitShards& unit : shards) unit.flat_parameters[0].parameter.fill_(-1);
    const absl::Status status = CopyInitialValues(
        *layout_, rank, shards,
        [&](std::string_view name) -> absl::StatusOr<at::Tensor> { return values.find(std::string(name))->second; });
    ASSERT_TRUE(status.ok()) << status;
    root.push_back(shards[0].flat_parameters[0].parameter.clone());
    layer.push_back(shards[1].flat_parameters[0].parameter.clone());
    EXPECT_EQ(shards[0].flat_parameters[1].parameter.item<float>(), rank == Rank(0) ? 4 : 0);
    EXPECT_TRUE(shards[0].buffers.at("positions").equal(values.at("positions")));
    EXPECT_TRUE(shards[1].buffers.at("layer.mean").equal(values.at("layer.mean")));
  }
  EXPECT_TRUE(torch::cat(root).equal(torch::cat({torch::arange(15, at::kFloat), torch::zeros(1)})));
  EXPECT_TRUE(torch::cat(layer).equal(
      torch::cat({torch::arange(100, 110, at::kFloat), torch::arange(200, 203, at::kFloat), torch::zeros(1)})));
}

TEST_F(InitialValuesTest, Copy_AsksInRegistrationOrderForTiedOnesOnce) {
  TestRankMemory daemon(layout_, Rank(0));
  const std::vector<UnitShards> shards =
      MakeShards(*MappedMemory::Map(layout_, Rank(0), daemon.Hand(), daemon.arenas()));
  const TensorsByName values = Values();
  std::vector<std::string> asked;
  ASSERT_TRUE(CopyInitialValues(*layout_, Rank(0), shards, [&](std::string_view name) -> absl::StatusOr<at::Tensor> {
                asked.emplace_back(name);
                return values.find(std::string(name))->second;
              }).ok());
  EXPECT_THAT(asked, ElementsAre("embed.weight", "norm.scale", "positions", "layer.weight", "layer.none", "layer.bias",
                                 "layer.mean"));
}

TEST_F(InitialValuesTest, Copy_ErrorOfTheSourceIsReturned) {
  TestRankMemory daemon(layout_, Rank(0));
  const std::vector<UnitShards> shards =
      MakeShards(*MappedMemory::Map(layout_, Rank(0), daemon.Hand(), daemon.arenas()));
  const absl::Status status = CopyInitialValues(
      *layout_, Rank(0), shards,
      [](std::string_view) -> absl::StatusOr<at::Tensor> { return absl::DataLossError("file cut short"); });
  EXPECT_EQ(status, absl::DataLossError("file cut short"));
}

TEST_F(InitialValuesTest, Copy_TakesNonContiguousValuesThatRequireGrad) {
  TestRankMemory daemon(layout_, Rank(0));
  const std::vector<UnitShards> shards =
      MakeShards(*MappedMemory::Map(layout_, Rank(0), daemon.Hand(), daemon.arenas()));
  TensorsByName values = Values();
  values["embed.weight"] = torch::arange(15, at::kFloat).view({3, 5}).t().requires_grad_();
  ASSERT_TRUE(CopyInitialValues(*layout_, Rank(0), shards, [&](std::string_view name) -> absl::StatusOr<at::Tensor> {
                return values.find(std::string(name))->second;
              }).ok());
  const at::Tensor expected = torch::tensor({0.F, 5.F, 10.F, 1.F, 6.F, 11.F, 2.F, 7.F});
  EXPECT_TRUE(shards[0].flat_parameters[0].parameter.equal(expected));
}

TEST_F(InitialValuesTest, Check_TiedAndIgnoredNamesMayBeThere) {
  TensorsByName values = Values();
  EXPECT_TRUE(CheckInitialValues(*layout_, values).ok());
  values["head.weight"] = values["embed.weight"];
  values["ignored.table"] = torch::ones(3);
  EXPECT_TRUE(CheckInitialValues(*layout_, values).ok());
}

TEST_F(InitialValuesTest, Check_NamesWhatIsWrong) {
  const struct {
    std::string message;
    std::function<void(TensorsByName&)> change;
  } cases[] = {
      {"no value is given for layer.bias;", [](TensorsByName& v) { v.erase("layer.bias"); }},
      {"no value is given for layer.mean, positions;",
       [](TensorsByName& v) {
         v.erase("positions");
         v.erase("layer.mean");
       }},
      {"values are given for layer.typo, which the model 'small' does not have",
       [](TensorsByName& v) { v["layer.typo"] = torch::ones(1); }},
      {"'layer.weight' has the shape [10], registered is [2, 5]",
       [](TensorsByName& v) { v["layer.weight"] = torch::ones(10); }},
      {"'norm.scale' has the shape [1], registered is []", [](TensorsByName& v) { v["norm.scale"] = torch::ones(1); }},
      {"'layer.bias' is of dtype Long, which cannot be taken for float32",
       [](TensorsByName& v) { v["layer.bias"] = torch::arange(3); }},
      {"'positions' is of dtype Int, which cannot be taken for int64",
       [](TensorsByName& v) { v["positions"] = torch::arange(4, at::kInt); }},
      {"'layer.bias' is an undefined tensor", [](TensorsByName& v) { v["layer.bias"] = at::Tensor(); }},
  };
  for (const auto& test : cases) {
    TensorsByName values = Values();
    test.change(values);
    const absl::Status status = CheckInitialValues(*layout_, values);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(test.message));
  }
}

}  // namespace
}  // namespace holdfast
