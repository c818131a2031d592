#include "server/core/ema_copies.h"

#include <memory>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "default" moves every step, "slow" every second, "half" every step; see SmallModel.
constexpr size_t kDefault = 0, kSlow = 1, kHalf = 2;

class EmaCopiesTest : public ::testing::Test {
 protected:
  const ModelLayout layout_ = *ModelLayout::Create(SmallModel({.num_replicate = 2, .num_shard = 2}), 4);
  EmaCopies copies_{layout_};
};

TEST_F(EmaCopiesTest, SelectsByNameInTheOrderOfTheSpecEachOnce) {
  EXPECT_THAT(*copies_.Select({}), ElementsAre(kDefault, kSlow, kHalf));
  EXPECT_THAT(*copies_.Select({"half", "default", "half"}), ElementsAre(kDefault, kHalf));
  EXPECT_THAT(
      copies_.Select({"half", "best"}),
      FailsWith(absl::StatusCode::kNotFound, "ema: model 'small' has no EMA 'best'; it has 'default', 'slow', 'half'"));
}

TEST_F(EmaCopiesTest, ACopyMovesToAStepOnce) {
  EmaResult result = copies_.MovedTo(kDefault, Step(1));
  EXPECT_TRUE(result.applied);
  EXPECT_EQ(result.name, "default");
  EXPECT_EQ(result.decay, 0.5);
  EXPECT_EQ(result.num_updates, 1u);
  result = copies_.MovedTo(kDefault, Step(1));
  EXPECT_FALSE(result.applied);
  EXPECT_EQ(result.num_updates, 1u);
  EXPECT_EQ(copies_.positions()[kDefault].step, Step(1));
  EXPECT_EQ(copies_.positions()[kSlow].step, Step(0));
}

TEST_F(EmaCopiesTest, AStepThatUpdateEverySkipsIsReachedButNotCounted) {
  EmaResult result = copies_.MovedTo(kSlow, Step(1));
  EXPECT_FALSE(result.applied);
  EXPECT_EQ(result.decay, 1);
  EXPECT_EQ(result.num_updates, 0u);
  EXPECT_EQ(copies_.positions()[kSlow].step, Step(1));
  result = copies_.MovedTo(kSlow, Step(2));
  EXPECT_TRUE(result.applied);
  EXPECT_EQ(result.decay, 0.75);
  EXPECT_EQ(result.num_updates, 1u);
}

TEST_F(EmaCopiesTest, CopyingInStartsTheCountsAfresh) {
  copies_.MovedTo(kDefault, Step(1));
  copies_.CopiedIn(Step(1));
  for (const EmaPosition& position : copies_.positions()) {
    EXPECT_EQ(position.step, Step(1));
    EXPECT_EQ(position.num_updates, 0u);
  }
}

class EmaTasksTest : public EmaCopiesTest {
 protected:
  EmaTasksTest() {
    for (int32_t rank = 0; rank < 4; ++rank) {
      memory_.push_back(*RankMemory::Create(layout_, Rank(rank), *device_));
    }
  }

  std::vector<EmaTask> Tasks(int32_t rank, size_t ema, Step step) {
    return EmaMoveTasks(layout_, *memory_[static_cast<size_t>(rank)], ema, step,
                        [](const RankMemory& memory, const FlatParameter& flat) { return memory.Shard(flat); });
  }

  const std::unique_ptr<WorkerPool> pool_ = *WorkerPool::Create(1);
  const std::unique_ptr<CpuDevice> device_ = *CpuDevice::Create(pool_.get());
  std::vector<std::unique_ptr<RankMemory>> memory_;
};

TEST_F(EmaTasksTest, CoverTheTrainableShardsAndNoOthers) {
  std::set<const void*> trainable;
  for (const UnitLayout& unit : layout_.units()) {
    for (const FlatParameter& flat : unit.flat_parameters) {
      if (flat.trainable) trainable.insert(memory_[1]->Shard(flat));
    }
  }
  std::set<const void*> moved, copied;
  for (const EmaTask& task : Tasks(1, kDefault, Step(1))) {
    moved.insert(task.parameter);
    EXPECT_EQ(task.decay, 0.5);
    EXPECT_EQ(task.ema_dtype, DType::kFloat32);
  }
  for (const CopyTask& task : EmaCopyInTasks(layout_, *memory_[1])) copied.insert(task.src);
  EXPECT_EQ(moved, trainable);
  EXPECT_EQ(copied, trainable);
}

TEST_F(EmaTasksTest, AStepThatIsSkippedHasNoWork) {
  EXPECT_THAT(Tasks(0, kSlow, Step(3)), IsEmpty());
  EXPECT_FALSE(Tasks(0, kSlow, Step(4)).empty());
}

TEST_F(EmaTasksTest, RandomBitsGoByStepCopyAndElementAndAreAlikeOnReplicas) {
  const std::vector<EmaTask> tasks = Tasks(0, kHalf, Step(1));
  const std::vector<EmaTask> other_shard = Tasks(1, kHalf, Step(1));
  const std::vector<EmaTask> replica = Tasks(2, kHalf, Step(1));
  const std::vector<EmaTask> next_step = Tasks(0, kHalf, Step(2));
  const std::vector<EmaTask> other_copy = Tasks(0, kDefault, Step(1));
  std::set<uint64_t> seeds;
  for (size_t i = 0; i < tasks.size(); ++i) {
    seeds.insert(tasks[i].seed);
    EXPECT_EQ(tasks[i].first_element, 0u);
    EXPECT_EQ(other_shard[i].seed, tasks[i].seed);
    EXPECT_EQ(other_shard[i].first_element, static_cast<uint64_t>(tasks[i].num_elements));
    EXPECT_EQ(replica[i].seed, tasks[i].seed);
    EXPECT_EQ(replica[i].first_element, 0u);
    EXPECT_NE(next_step[i].seed, tasks[i].seed);
    EXPECT_NE(other_copy[i].seed, tasks[i].seed);
  }
  EXPECT_EQ(seeds.size(), tasks.size());
}

}  // namespace
}  // namespace holdfast
