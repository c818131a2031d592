#include "common/layout.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/sample_spec.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SampleLayoutTest : public testing::Test {
 protected:
  const FlatParameter& flat(size_t unit, size_t index) const { return layout_.units()[unit].flat_parameters[index]; }

  ModelLayout layout_ = *ModelLayout::Create(SampleSpec(), 2);
};

// What follows is worked out by hand: two shards, masters of 4 bytes, everything at multiples of 64 bytes.

TEST_F(SampleLayoutTest, FlatParameters_OneADTypeAndTrainability_InOrderOfAppearance) {
  ASSERT_EQ(layout_.units().size(), 3u);
  ASSERT_EQ(layout_.units()[0].flat_parameters.size(), 1u);
  ASSERT_EQ(layout_.units()[1].flat_parameters.size(), 4u);
  ASSERT_EQ(layout_.units()[2].flat_parameters.size(), 1u);
  EXPECT_EQ(flat(1, 0).dtype, DType::kBFloat16);
  EXPECT_EQ(flat(1, 1).dtype, DType::kFloat32);
  EXPECT_TRUE(flat(1, 1).trainable);
  EXPECT_EQ(flat(1, 2).dtype, DType::kFloat32);
  EXPECT_FALSE(flat(1, 2).trainable);
  EXPECT_EQ(flat(1, 3).dtype, DType::kFloat8E4M3FN);
  EXPECT_FALSE(flat(1, 3).trainable);
}

TEST_F(SampleLayoutTest, Precision_AppliesToFloatingPointOnly) {
  for (const size_t i : {0, 1, 2}) {
    EXPECT_EQ(flat(1, i).param_dtype, DType::kBFloat16);
    EXPECT_EQ(flat(1, i).reduce_dtype, DType::kFloat32);
    EXPECT_EQ(flat(1, i).master_dtype, DType::kFloat32);
  }
  EXPECT_EQ(flat(1, 3).param_dtype, DType::kFloat8E4M3FN);
  EXPECT_EQ(flat(1, 3).reduce_dtype, DType::kFloat8E4M3FN);
  EXPECT_EQ(flat(1, 3).master_dtype, DType::kFloat8E4M3FN);
}

TEST_F(SampleLayoutTest, Sizes_OfShardsAreEqual_TiedWeightsCountOnce) {
  EXPECT_EQ(flat(0, 0).num_elements, 15);
  EXPECT_EQ(flat(0, 0).shard_elements, 8);
  EXPECT_EQ(flat(1, 0).shard_elements, 8);
  EXPECT_EQ(flat(1, 1).shard_elements, 2);
  EXPECT_EQ(flat(1, 2).num_elements, 1);
  EXPECT_EQ(flat(1, 2).shard_elements, 1);
  EXPECT_EQ(flat(1, 3).shard_elements, 2);
  // The tied weight is not in the head's flat parameter.
  ASSERT_EQ(flat(2, 0).parameters.size(), 1u);
  EXPECT_EQ(flat(2, 0).parameters[0].name, "head.bias");
  EXPECT_EQ(flat(2, 0).shard_elements, 3);
  EXPECT_EQ(layout_.num_elements(), 15 + 16 + 4 + 1 + 3 + 5);
}

TEST_F(SampleLayoutTest, Places_InEveryArena) {
  EXPECT_EQ(flat(0, 0).shard_offset, 0);
  EXPECT_EQ(flat(1, 0).shard_offset, 64);
  EXPECT_EQ(flat(1, 1).shard_offset, 128);
  EXPECT_EQ(flat(1, 2).shard_offset, 192);
  EXPECT_EQ(flat(1, 3).shard_offset, 256);
  EXPECT_EQ(flat(2, 0).shard_offset, 320);

  EXPECT_EQ(flat(0, 0).gradient_offset, 0);
  EXPECT_EQ(flat(1, 0).gradient_offset, 64);
  EXPECT_EQ(flat(1, 1).gradient_offset, 128);
  EXPECT_EQ(flat(2, 0).gradient_offset, 192);

  EXPECT_THAT(flat(0, 0).state_offsets, ElementsAre(0, 64));
  EXPECT_THAT(flat(1, 0).state_offsets, ElementsAre(128, 192));
  EXPECT_THAT(flat(1, 1).state_offsets, ElementsAre(256, 320));
  EXPECT_THAT(flat(2, 0).state_offsets, ElementsAre(384, 448));
  EXPECT_THAT(flat(2, 0).ema_offsets, ElementsAre(384, 448));

  EXPECT_EQ(layout_.units()[0].buffers[0].offset, 0);
  EXPECT_EQ(layout_.units()[1].buffers[0].offset, 64);
}

TEST_F(SampleLayoutTest, Places_OfFrozenOnes_AreOnlyAmongParametersAndInGatherSlots) {
  for (const size_t i : {2, 3}) {
    EXPECT_EQ(flat(1, i).gradient_offset, -1);
    EXPECT_EQ(flat(1, i).gradient_slot_offset, -1);
    EXPECT_THAT(flat(1, i).state_offsets, IsEmpty());
    EXPECT_THAT(flat(1, i).ema_offsets, IsEmpty());
  }
}

TEST_F(SampleLayoutTest, Slots_HoldAUnitsFlatParametersPadded) {
  EXPECT_EQ(flat(1, 0).gather_offset, 0);
  EXPECT_EQ(flat(1, 1).gather_offset, 64);
  EXPECT_EQ(flat(1, 2).gather_offset, 128);
  EXPECT_EQ(flat(1, 3).gather_offset, 192);
  EXPECT_EQ(layout_.units()[1].gather_bytes, 192 + 4);
  EXPECT_EQ(flat(1, 0).gradient_slot_offset, 0);
  EXPECT_EQ(flat(1, 1).gradient_slot_offset, 64);
  EXPECT_EQ(layout_.units()[1].gradient_bytes, 64 + 16);
  EXPECT_EQ(layout_.units()[2].gather_bytes, 6 * 2);
  EXPECT_EQ(layout_.units()[2].gradient_bytes, 6 * 4);
  EXPECT_EQ(layout_.gather_slots(), 3);
  EXPECT_EQ(layout_.gradient_slots(), 2);
  EXPECT_EQ(layout_.gather_slot_bytes(), 4096);
  EXPECT_EQ(layout_.gradient_slot_bytes(), 4096);
}

TEST_F(SampleLayoutTest, Memory_ByPurpose) {
  EXPECT_EQ(layout_.ArenaBytes(v1::MEMORY_PURPOSE_PARAMETERS), 2 * 4096);
  EXPECT_EQ(layout_.ArenaBytes(v1::MEMORY_PURPOSE_GATHER_SLOTS), 4 * 4096);
  EXPECT_EQ(layout_.ArenaBytes(v1::MEMORY_PURPOSE_GRADIENT_SLOTS), 3 * 4096);
  EXPECT_EQ(layout_.ArenaBytes(v1::MEMORY_PURPOSE_UNDO), 4 * 4096);
  EXPECT_EQ(layout_.Memory().size(), 8u);
  EXPECT_EQ(layout_.BytesPerRank(), (5 * 2 + 4 + 3 + 4) * 4096);
}

TEST_F(SampleLayoutTest, FindTensor_LeadsToParametersAliasesAndBuffers) {
  EXPECT_THAT(layout_.tensor_names(),
              ElementsAre("embed.weight", "embed.positions", "block.weight", "block.bias", "block.scale", "block.codes",
                          "block.mean", "head.weight", "head.bias"));
  const TensorLocation tied = layout_.FindTensor("head.weight").value();
  EXPECT_EQ(tied.unit, UnitIndex(0));
  EXPECT_EQ(tied.flat_parameter, 0);
  EXPECT_EQ(tied.index, 0);
  const TensorLocation buffer = layout_.FindTensor("block.mean").value();
  EXPECT_EQ(buffer.unit, UnitIndex(1));
  EXPECT_EQ(buffer.flat_parameter, -1);
  EXPECT_EQ(layout_.FindTensor("block").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(layout_.FindTensor("block").status().message(),
              HasSubstr("model 'sample' has no parameter or buffer 'block'"));
}

TEST_F(SampleLayoutTest, FindUnit_Unknown_NamesSomeThatThereAre) {
  EXPECT_EQ(layout_.FindUnit("head").value(), UnitIndex(2));
  const absl::Status status = layout_.FindUnit("tail").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("has no unit 'tail'; its units are 'embed', 'block', 'head'"));
  EXPECT_LT(layout_.FindUnit(std::string(1 << 20, 'x')).status().message().size(), 1024u);
}

TEST_F(SampleLayoutTest, Spec_HasItsDefaultsFilledIn) {
  EXPECT_EQ(layout_.spec().mesh().num_replicate(), 1u);
  EXPECT_EQ(layout_.spec().mesh().num_shard(), 2u);
  EXPECT_EQ(layout_.spec().gather_slots(), 3u);
  EXPECT_EQ(layout_.spec().gradient_slots(), 2u);
  EXPECT_EQ(layout_.spec().update_protection(), v1::UPDATE_PROTECTION_UNDO_COPY);
  EXPECT_EQ(layout_.spec().emas(0).dtype(), v1::DATA_TYPE_FLOAT32);
  EXPECT_EQ(layout_.spec().emas(1).dtype(), v1::DATA_TYPE_BFLOAT16);
  EXPECT_EQ(layout_.spec().emas(0).update_every(), 1u);
}

TEST(LayoutTest, StateDType_DefaultIsTheMastersOwn) {
  v1::ModelSpec spec = SampleSpec();
  spec.mutable_precision()->clear_master();
  const ModelLayout layout = *ModelLayout::Create(spec, 2);
  const std::vector<FlatParameter>& flats = layout.units()[1].flat_parameters;
  EXPECT_EQ(layout.StateDType(flats[0], 0), DType::kBFloat16);
  EXPECT_EQ(layout.StateDType(flats[1], 0), DType::kFloat32);
  EXPECT_EQ(layout.StateDType(flats[1], 1), DType::kBFloat16);
}

TEST(LayoutTest, Precision_Unspecified_IsTheParametersOwn_ReduceFollowsParam) {
  v1::ModelSpec spec = SampleSpec();
  spec.clear_precision();
  spec.mutable_precision()->set_param(v1::DATA_TYPE_FLOAT16);
  const ModelLayout layout = *ModelLayout::Create(spec, 2);
  const FlatParameter& flat = layout.units()[0].flat_parameters[0];
  EXPECT_EQ(flat.param_dtype, DType::kFloat16);
  EXPECT_EQ(flat.reduce_dtype, DType::kFloat16);
  EXPECT_EQ(flat.master_dtype, DType::kFloat32);
}

TEST(LayoutTest, BufferPrecision_IsForFloatingPointBuffers) {
  v1::ModelSpec spec = SampleSpec();
  spec.mutable_precision()->set_buffer(v1::DATA_TYPE_BFLOAT16);
  const ModelLayout layout = *ModelLayout::Create(spec, 2);
  EXPECT_EQ(layout.units()[0].buffers[0].dtype, DType::kInt64);
  EXPECT_EQ(layout.units()[1].buffers[0].dtype, DType::kBFloat16);
}

TEST(LayoutTest, SlotOfALargeUnit_IsRoundedUpToPages) {
  v1::ModelSpec spec = SampleSpec();
  // With the 15 of the other weight these are 4111 elements, padded to 4112.
  AddParameter(*spec.mutable_units(0), "embed.large", {4096});
  const ModelLayout layout = *ModelLayout::Create(spec, 2);
  EXPECT_EQ(layout.units()[0].gather_bytes, 4112 * 2);
  EXPECT_EQ(layout.gather_slot_bytes(), 3 * 4096);
  EXPECT_EQ(layout.gradient_slot_bytes(), 5 * 4096);
  EXPECT_EQ(layout.ArenaBytes(v1::MEMORY_PURPOSE_GATHER_SLOTS), 4096 + 3 * 3 * 4096);
}

TEST(LayoutTest, ShardGradOp_HasASlotForEachUnitThatHasParameters) {
  v1::ModelSpec spec = SampleSpec();
  spec.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_SHARD_GRAD_OP);
  spec.add_units()->set_name("nothing");
  EXPECT_EQ(ModelLayout::Create(spec, 2)->gather_slots(), 3);
  spec.add_ignored_parameters("block.*");
  EXPECT_EQ(ModelLayout::Create(spec, 2)->gather_slots(), 2);
  spec.add_ignored_parameters("*");
  EXPECT_EQ(ModelLayout::Create(spec, 2)->gather_slots(), 1);
  spec.set_gather_slots(7);
  EXPECT_EQ(ModelLayout::Create(spec, 2)->gather_slots(), 7);
}

TEST(LayoutTest, EverythingIgnored_ArenasAreTheirHeaderPages) {
  v1::ModelSpec spec = SampleSpec();
  spec.add_ignored_parameters("*");
  const ModelLayout layout = *ModelLayout::Create(spec, 2);
  EXPECT_EQ(layout.units().size(), 3u);
  EXPECT_THAT(layout.tensor_names(), IsEmpty());
  EXPECT_EQ(layout.num_elements(), 0);
  for (const auto purpose : {v1::MEMORY_PURPOSE_PARAMETERS, v1::MEMORY_PURPOSE_GRADIENTS, v1::MEMORY_PURPOSE_BUFFERS,
                             v1::MEMORY_PURPOSE_OPTIMIZER_STATE, v1::MEMORY_PURPOSE_EMA, v1::MEMORY_PURPOSE_UNDO}) {
    EXPECT_EQ(layout.ArenaBytes(purpose), 4096) << purpose;
  }
}

TEST(LayoutTest, UpdateProtectionNone_HasNoUndoArena) {
  v1::ModelSpec spec = SampleSpec();
  const int64_t protected_bytes = ModelLayout::Create(spec, 2)->BytesPerRank();
  spec.set_update_protection(v1::UPDATE_PROTECTION_NONE);
  const ModelLayout layout = *ModelLayout::Create(spec, 2);
  for (const v1::MemoryUse& use : layout.Memory()) EXPECT_NE(use.purpose(), v1::MEMORY_PURPOSE_UNDO);
  EXPECT_EQ(layout.BytesPerRank(), protected_bytes - 4 * 4096);
}

TEST(LayoutTest, Mesh_OfEachStrategy) {
  struct Case {
    v1::ShardingStrategy strategy;
    uint32_t asked_replicate, asked_shard;
    int32_t num_replicate, num_shard;
  };
  for (const Case& c :
       {Case{v1::SHARDING_STRATEGY_FULL_SHARD, 0, 0, 1, 6}, Case{v1::SHARDING_STRATEGY_SHARD_GRAD_OP, 0, 6, 1, 6},
        Case{v1::SHARDING_STRATEGY_NO_SHARD, 6, 0, 6, 1}, Case{v1::SHARDING_STRATEGY_HYBRID_SHARD, 2, 3, 2, 3}}) {
    v1::ModelSpec spec = SampleSpec();
    spec.mutable_mesh()->set_strategy(c.strategy);
    spec.mutable_mesh()->set_num_replicate(c.asked_replicate);
    spec.mutable_mesh()->set_num_shard(c.asked_shard);
    const ModelLayout layout = *ModelLayout::Create(spec, 6);
    EXPECT_EQ(layout.mesh().num_replicate, c.num_replicate);
    EXPECT_EQ(layout.mesh().num_shard, c.num_shard);
    EXPECT_EQ(layout.mesh().world(), 6);
    for (int32_t rank = 0; rank < 6; ++rank) {
      EXPECT_EQ(layout.mesh().RankAt(layout.mesh().ReplicaOf(Rank(rank)), layout.mesh().ShardOf(Rank(rank))),
                Rank(rank));
    }
  }
}

// Were any step of it quadratic, this would take hours.
TEST(LayoutTest, Create_ManyUnitsAndParameters) {
  constexpr int kUnits = 65536;
  constexpr int kParameters = 8;
  v1::ModelSpec spec = SampleSpec();
  spec.clear_units();
  for (int i = 0; i < kUnits; ++i) {
    v1::UnitSpec& unit = *spec.add_units();
    unit.set_name(absl::StrCat("u", i));
    for (int k = 0; k < kParameters; ++k) AddParameter(unit, absl::StrCat("u", i, ".", k), {k});
    // All are tied to one, and many to the same.
    if (i > 0) AddParameter(unit, absl::StrCat("u", i, ".tied"), {3}).set_alias_of("u0.3");
  }
  const absl::StatusOr<ModelLayout> layout = ModelLayout::Create(spec, 2);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->num_elements(), int64_t{kUnits} * (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7));
  EXPECT_EQ(layout->tensor_names().size(), size_t{kUnits} * (kParameters + 1) - 1);
  EXPECT_EQ(layout->FindTensor("u65535.tied")->unit, UnitIndex(0));
}

TEST(LayoutTest, Create_ManyParametersInOneUnit) {
  constexpr int kParameters = 300000;
  v1::ModelSpec spec = SampleSpec();
  for (int i = 0; i < kParameters; ++i) {
    AddParameter(*spec.mutable_units(1), absl::StrCat("p", i), {1},
                 i % 2 == 0 ? v1::DATA_TYPE_FLOAT32 : v1::DATA_TYPE_FLOAT64);
  }
  const absl::StatusOr<ModelLayout> layout = ModelLayout::Create(spec, 2);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->units()[1].flat_parameters.size(), 5u);
  EXPECT_EQ(layout->units()[1].flat_parameters[4].num_elements, kParameters / 2);
}

}  // namespace
}  // namespace holdfast
