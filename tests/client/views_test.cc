// The tensors over a rank's memory: shards, gathered units, gradient slots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "client/gathered_unit.h"
#include "client/gradient_ring.h"
#include "client/gradient_slot.h"
#include "client/mapped_memory.h"
#include "client/shards.h"
#include "tests/client/test_rank_memory.h"

namespace holdfast {
namespace {

class ViewsTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ModelLayout> layout_ =
      std::make_shared<const ModelLayout>(*ModelLayout::Create(SmallModelSpec(), 2));
  TestRankMemory daemon_{layout_, Rank(0)};
  std::shared_ptr<MappedMemory> memory_ = *MappedMemory::Map(layout_, Rank(0), daemon_.Hand(), daemon_.arenas());
  std::shared_ptr<GradientRing> ring_ = std::make_shared<GradientRing>(2);
};

TEST_F(ViewsTest, Shards_FollowTheLayout) {
  const std::vector<UnitShards> shards = MakeShards(memory_);
  ASSERT_EQ(shards.size(), 2u);
  ASSERT_EQ(shards[0].flat_parameters.size(), 2u);
  const FlatShard& trainable = shards[0].flat_parameters[0];
  EXPECT_EQ(trainable.parameter.sizes(), (std::vector<int64_t>{8}));
  EXPECT_EQ(trainable.parameter.scalar_type(), at::kFloat);
  EXPECT_EQ(trainable.gradient.sizes(), trainable.parameter.sizes());
  EXPECT_EQ(trainable.states.at("exp_avg").sizes(), trainable.parameter.sizes());
  EXPECT_EQ(trainable.emas.at("default").sizes(), trainable.parameter.sizes());
  const FlatShard& frozen = shards[0].flat_parameters[1];
  EXPECT_EQ(frozen.parameter.numel(), 1);
  EXPECT_FALSE(frozen.gradient.defined());
  EXPECT_TRUE(frozen.states.empty() && frozen.emas.empty());
  EXPECT_EQ(shards[0].buffers.at("positions").scalar_type(), at::kLong);
  EXPECT_EQ(shards[1].buffers.at("layer.mean").sizes(), (std::vector<int64_t>{2, 2}));
}

TEST_F(ViewsTest, Shards_WriteThroughToTheDaemonsMemory) {
  const std::vector<UnitShards> shards = MakeShards(memory_);
  const FlatShard& shard = shards[1].flat_parameters[0];
  shard.parameter.fill_(2.5);
  float seen = 0;
  std::memcpy(&seen, daemon_.data(v1::MEMORY_PURPOSE_PARAMETERS) + shard.layout->shard_offset, sizeof(seen));
  EXPECT_EQ(seen, 2.5F);
}

TEST_F(ViewsTest, View_KeepsTheMappingAlive) {
  at::Tensor view = MakeShards(memory_)[0].flat_parameters[0].parameter;
  memory_.reset();
  EXPECT_TRUE(daemon_.IsConnected());
  view.fill_(1);
  EXPECT_EQ(view.sum().item<float>(), 8);
  view.reset();
  EXPECT_FALSE(daemon_.IsConnected());
}

TEST_F(ViewsTest, GatheredUnit_ShowsParametersWithTheirShape) {
  const FlatParameter& flat = layout_->units()[1].flat_parameters[0];
  const at::Tensor values = torch::arange(14, at::kFloat).to(at::kBFloat16);
  std::memcpy(daemon_.data(v1::MEMORY_PURPOSE_GATHER_SLOTS) + layout_->gather_slot_bytes() + flat.gather_offset,
              values.data_ptr(), 14 * 2);
  const GatheredUnit unit(memory_, UnitIndex(1), 1, false);
  EXPECT_EQ(unit.flat(0).sizes(), (std::vector<int64_t>{14}));
  EXPECT_TRUE(unit.flat(0).equal(values));
  EXPECT_EQ(unit.parameter(0, 0).scalar_type(), at::kBFloat16);
  EXPECT_TRUE(unit.parameter(0, 0).equal(values.narrow(0, 0, 10).view({2, 5})));
  EXPECT_EQ(unit.Find("layer.none")->sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(unit.Find("layer.bias")->equal(values.narrow(0, 10, 3)));
}

TEST_F(ViewsTest, GatheredUnit_FindsTiedNamesAndRefusesOthers) {
  const GatheredUnit root(memory_, UnitIndex(0), 0, false);
  EXPECT_EQ(root.Find("head.weight")->data_ptr(), root.Find("embed.weight")->data_ptr());
  EXPECT_EQ(root.Find("norm.scale")->dim(), 0);
  for (const char* name : {"layer.weight", "positions", "nothing"}) {
    EXPECT_EQ(root.Find(name).status().code(), absl::StatusCode::kNotFound) << name;
  }
}

TEST_F(ViewsTest, GatheredUnit_ServesAutograd) {
  const GatheredUnit unit(memory_, UnitIndex(1), 0, false);
  const at::Tensor weight = unit.parameter(0, 0).detach().requires_grad_();
  (weight.to(at::kFloat) * 3).sum().backward();
  EXPECT_TRUE(weight.grad().to(at::kFloat).equal(torch::full({2, 5}, 3.0F)));
}

TEST_F(ViewsTest, GradientSlot_IsInTheReduceDtypeAndWritable) {
  GradientSlot slot(memory_, *ring_->Claim(UnitIndex(1)));
  EXPECT_EQ(slot.parameter(0, 0).scalar_type(), at::kFloat);
  slot.flat(0).fill_(7);
  slot.Find("layer.bias")->zero_();
  const at::Tensor flat = slot.flat(0);
  EXPECT_EQ(flat.narrow(0, 0, 10).sum().item<float>(), 70);
  EXPECT_EQ(flat.narrow(0, 10, 3).sum().item<float>(), 0);
  slot.Zero();
  EXPECT_EQ(flat.sum().item<float>(), 0);
}

TEST_F(ViewsTest, GradientSlot_FrozenHasNone) {
  const GradientSlot slot(memory_, *ring_->Claim(UnitIndex(0)));
  EXPECT_FALSE(slot.flat(1).defined());
  EXPECT_FALSE(slot.parameter(1, 0).defined());
  EXPECT_EQ(slot.Find("norm.scale").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(slot.Find("head.weight").ok());
}

}  // namespace
}  // namespace holdfast
