#include "client/examples/text/training_config.h"

#include <gtest/gtest.h>

#include "client/examples/text/model_spec.h"
#include "common/layout.h"

namespace text {
namespace {

TrainingConfig Config() {
  TrainingConfig config;
  config.model.vocabulary_size = 76;
  return config;
}

TEST(TrainingConfigTest, AdamWAt_RisesThenFallsToATenth) {
  TrainingConfig config = Config();
  config.num_steps = 100;
  config.warmup_steps = 10;
  config.adamw.learning_rate = 1;
  EXPECT_DOUBLE_EQ(AdamWAt(config, 1).learning_rate, 0.1);
  EXPECT_DOUBLE_EQ(AdamWAt(config, 10).learning_rate, 1);
  EXPECT_NEAR(AdamWAt(config, 55).learning_rate, 0.55, 1e-12);
  EXPECT_NEAR(AdamWAt(config, 100).learning_rate, 0.1, 1e-12);
  for (uint64_t step = 11; step <= 100; ++step) {
    EXPECT_LT(AdamWAt(config, step).learning_rate, AdamWAt(config, step - 1).learning_rate);
  }
}

TEST(TrainingConfigTest, Validate_WrongField_IsNamed) {
  EXPECT_TRUE(Validate(Config()).ok());
  const auto message = [](void (*change)(TrainingConfig&)) {
    TrainingConfig config = Config();
    change(config);
    return std::string(Validate(config).message());
  };
  EXPECT_EQ(message([](auto& c) { c.num_ranks = 0; }), "ranks is 0; it must be at least 1");
  EXPECT_EQ(message([](auto& c) { c.batch_size = -1; }), "batch_size is -1; it must be at least 1");
  EXPECT_EQ(message([](auto& c) { c.num_steps = 0; }), "steps is 0; it must be at least 1");
  EXPECT_EQ(message([](auto& c) { c.ema_decay = 1; }), "ema_decay is 1; it must be 0 or more, and below 1");
  EXPECT_EQ(message([](auto& c) { c.adamw.learning_rate = 0; }), "learning_rate is 0; it must be above 0");
}

TEST(ModelSpecTest, Layout_HasAUnitAUnit_AndEveryWeight) {
  const TrainingConfig config = Config();
  const auto layout = holdfast::ModelLayout::Create(MakeModelSpec(config, {}), config.num_ranks);
  ASSERT_TRUE(layout.ok()) << layout.status();
  const std::vector<Unit> units = Units(config.model);
  ASSERT_EQ(layout->units().size(), units.size());
  for (size_t i = 0; i < units.size(); ++i) {
    EXPECT_EQ(layout->units()[i].name, units[i].name);
    ASSERT_EQ(layout->units()[i].flat_parameters.size(), 1u);
    const holdfast::FlatParameter& flat = layout->units()[i].flat_parameters[0];
    EXPECT_EQ(flat.parameters.size(), units[i].weights.size());
    EXPECT_EQ(flat.param_dtype, holdfast::DType::kBFloat16);
    EXPECT_EQ(flat.reduce_dtype, holdfast::DType::kFloat32);
    EXPECT_EQ(flat.master_dtype, holdfast::DType::kFloat32);
    EXPECT_EQ(flat.state_offsets.size(), 2u);
    EXPECT_EQ(flat.ema_offsets.size(), 1u);
  }
}

TEST(ModelSpecTest, HybridShard_SaysItsMesh) {
  const auto layout = holdfast::ModelLayout::Create(
      MakeModelSpec(
          Config(),
          {.model_name = "text", .strategy = holdfast::v1::SHARDING_STRATEGY_HYBRID_SHARD, .num_replicate = 2}),
      4);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->mesh().num_replicate, 2);
  EXPECT_EQ(layout->mesh().num_shard, 2);
}

}  // namespace
}  // namespace text
