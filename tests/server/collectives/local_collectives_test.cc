#include "server/collectives/local_collectives.h"

#include <cstring>
#include <utility>

#include "gmock/gmock.h"
#include "tests/server/collectives/collectives_conformance.h"

namespace holdfast {
namespace {

// One node that has all ranks.
class LocalWorld final : public World {
 public:
  LocalWorld(std::unique_ptr<WorkerPool> pool, std::unique_ptr<LocalCollectives> collectives)
      : pool_(std::move(pool)), collectives_(std::move(collectives)) {}

  int num_nodes() const override { return 1; }
  Collectives& node(int) override { return *collectives_; }
  std::vector<Rank> ranks(int) const override {
    std::vector<Rank> ranks;
    for (int32_t rank = 0; rank < collectives_->mesh().world(); ++rank) ranks.push_back(Rank(rank));
    return ranks;
  }
  std::byte* Allocate(Rank, size_t size_bytes) override {
    blocks_.push_back(std::make_unique<Line[]>(size_bytes / sizeof(Line) + 1));
    return blocks_.back()[0].bytes;
  }
  void Upload(std::byte* to, const void* from, size_t size_bytes) override { std::memcpy(to, from, size_bytes); }
  void Download(void* to, const std::byte* from, size_t size_bytes) override { std::memcpy(to, from, size_bytes); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<LocalCollectives> collectives_;
  std::vector<std::unique_ptr<Line[]>> blocks_;
};

std::unique_ptr<World> CreateLocalWorld(const MeshShape& mesh, int num_threads, InstructionSet instruction_set) {
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(num_threads);
  if (!pool.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<LocalCollectives>> collectives =
      LocalCollectives::Create(mesh, pool->get(), instruction_set);
  if (!collectives.ok()) return nullptr;
  return std::make_unique<LocalWorld>(*std::move(pool), *std::move(collectives));
}

// Every instruction set of this machine with two threads, and the best with 1 to 4.
std::vector<WorldFactory> Factories() {
  std::vector<WorldFactory> factories;
  const auto add = [&factories](int num_threads, InstructionSet set) {
    factories.push_back(
        {std::string(Name(set)) + "_threads" + std::to_string(num_threads),
         [num_threads, set](const MeshShape& mesh) { return CreateLocalWorld(mesh, num_threads, set); }});
  };
  for (const InstructionSet set : SupportedInstructionSets()) add(2, set);
  for (const int num_threads : {1, 3, 4}) add(num_threads, BestInstructionSet());
  return factories;
}

INSTANTIATE_TEST_SUITE_P(Local, CollectivesConformanceTest, ::testing::ValuesIn(Factories()), WorldFactoryName());

TEST(LocalCollectivesTest, Create_OfAMeshWithoutRanks_IsRefused) {
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(1);
  ASSERT_TRUE(pool.ok());
  for (const MeshShape& mesh : {MeshShape{0, 1}, MeshShape{1, 0}, MeshShape{-1, -1}}) {
    EXPECT_EQ(LocalCollectives::Create(mesh, pool->get()).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(LocalCollectivesTest, Abort_WithoutAReason_IsStillAnAbort) {
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(1);
  ASSERT_TRUE(pool.ok());
  absl::StatusOr<std::unique_ptr<LocalCollectives>> collectives = LocalCollectives::Create({1, 2}, pool->get());
  ASSERT_TRUE(collectives.ok());
  (*collectives)->Abort(absl::OkStatus());
  EXPECT_EQ((*collectives)->Barrier().code(), absl::StatusCode::kAborted);
}

// As torch.distributed.fsdp's DefaultState._get_gradient_predivide_factor.
TEST(GradientPredivideFactorTest, IsTheLargestPowerOfTwoThatTheWorldAllows) {
  const std::pair<int32_t, double> expected[] = {{1, 1}, {2, 2}, {3, 2},  {4, 2},  {5, 2},  {6, 4},   {7, 2},
                                                 {8, 4}, {9, 2}, {12, 4}, {16, 4}, {64, 8}, {128, 16}};
  for (const auto& [world, factor] : expected) EXPECT_EQ(GradientPredivideFactor(world), factor) << world;
}

}  // namespace
}  // namespace holdfast
