#include "tests/common/element/element_reference.h"
#include "tests/server/collectives/collectives_conformance.h"

namespace holdfast {

using testing::ArithmeticDTypes;
using testing::EncodeAll;

namespace {

constexpr int64_t kSizes[] = {0, 1, 3, 63, 64, 65};

double Converted(DType from, DType to, double value) {
  if (from == DType::kFloat64 && to != DType::kFloat64) value = testing::RoundedTo(DType::kFloat32, value);
  return testing::RoundedTo(to, value);
}

std::vector<std::byte> ConvertedAll(DType from, DType to, const std::vector<double>& values) {
  std::vector<double> converted(values.size());
  for (size_t i = 0; i < values.size(); ++i) converted[i] = Converted(from, to, values[i]);
  return EncodeAll(to, converted);
}

using Buffer = CollectivesConformanceTest::Buffer;

// A task and what its outputs must be, by rank; empty for a rank that only gives.
struct Case {
  AllGatherTask task;
  std::vector<Buffer> outs;
  std::vector<std::vector<std::byte>> expected;
};

// A shard's bytes, and the same converted.
struct Shard {
  std::vector<std::byte> bytes;
  std::vector<std::byte> converted;
};

Shard MakeShard(DType from, DType to, int64_t num_elements, uint64_t seed) {
  if (IsArithmetic(from)) {
    const std::vector<double> values = testing::RandomValues(from, num_elements, seed, 18);
    return {EncodeAll(from, values), ConvertedAll(from, to, values)};
  }
  std::vector<std::byte> bytes(static_cast<size_t>(num_elements * SizeOf(from)));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + seed);
  return {bytes, bytes};
}

// Gives the `skips` lowest ranks no output.
Case MakeCase(CollectivesConformanceTest& test, DType from, DType to, int64_t shard_elements, uint64_t seed,
              int32_t skips = 0) {
  const MeshShape& mesh = test.mesh();
  Case made{.task = {.from = from, .to = to, .shard_elements = shard_elements}};
  std::vector<std::vector<std::byte>> groups(static_cast<size_t>(mesh.num_replicate));
  for (int32_t rank = 0; rank < mesh.world(); ++rank) {
    const Shard shard = MakeShard(from, to, shard_elements, seed * 100 + static_cast<uint64_t>(rank));
    std::vector<std::byte>& group = groups[static_cast<size_t>(mesh.ReplicaOf(Rank(rank)))];
    group.insert(group.end(), shard.converted.begin(), shard.converted.end());
    const std::vector<std::byte> blank(shard.converted.size() * static_cast<size_t>(mesh.num_shard));
    made.outs.push_back(rank < skips ? Buffer() : test.Place(Rank(rank), blank));
    made.task.parts.push_back({Rank(rank), test.Place(Rank(rank), shard.bytes).address, made.outs.back().address});
  }
  for (int32_t rank = 0; rank < mesh.world(); ++rank) {
    const std::vector<std::byte>& group = groups[static_cast<size_t>(mesh.ReplicaOf(Rank(rank)))];
    made.expected.push_back(rank < skips ? std::vector<std::byte>() : group);
  }
  return made;
}

void Check(CollectivesConformanceTest& test, const Case& made) {
  for (size_t rank = 0; rank < made.outs.size(); ++rank) {
    ASSERT_EQ(test.Fetch(made.outs[rank]), made.expected[rank])
        << "rank " << rank << " of " << test.mesh().num_replicate << " x " << test.mesh().num_shard << ", "
        << Name(made.task.from) << " to " << Name(made.task.to) << ", " << made.task.shard_elements << " elements";
  }
}

}  // namespace

TEST_P(CollectivesConformanceTest, AllGather_EveryMeshDTypesAndOddSizes_GiveEveryRankItsGroupsShards) {
  for (const MeshShape& mesh : AllMeshes()) {
    Start(mesh);
    for (const DType from : ArithmeticDTypes()) {
      for (const DType to : ArithmeticDTypes()) {
        for (const int64_t size : kSizes) {
          const Case made = MakeCase(*this, from, to, size, 1);
          ASSERT_TRUE(Call(&Collectives::AllGather, std::vector{made.task}).ok());
          Check(*this, made);
        }
      }
    }
    CheckMargins();
  }
}

TEST_P(CollectivesConformanceTest, AllGather_OpaqueDTypes_AreCarriedAsBytes) {
  for (const DType dtype : testing::OpaqueDTypes()) {
    Start({2, 3});
    for (const int64_t size : kSizes) {
      const Case made = MakeCase(*this, dtype, dtype, size, 2);
      ASSERT_TRUE(Call(&Collectives::AllGather, std::vector{made.task}).ok());
      Check(*this, made);
    }
    CheckMargins();
  }
}

TEST_P(CollectivesConformanceTest, AllGather_RanksWithoutAnOutput_OnlyGive) {
  for (const int32_t skips : {1, 3, 5, 6}) {
    Start({2, 3});
    const Case made = MakeCase(*this, DType::kFloat32, DType::kBFloat16, 1001, 3, skips);
    ASSERT_TRUE(Call(&Collectives::AllGather, std::vector{made.task}).ok());
    Check(*this, made);
    CheckMargins();
  }
}

TEST_P(CollectivesConformanceTest, AllGather_SeveralTasks_AreOneCall) {
  Start({2, 2});
  std::vector<Case> cases;
  std::vector<AllGatherTask> tasks;
  for (const int64_t size : {5, 0, 1000, 70'001, 1}) {
    cases.push_back(MakeCase(*this, DType::kFloat32, DType::kBFloat16, size, static_cast<uint64_t>(size)));
    cases.push_back(MakeCase(*this, DType::kUInt8, DType::kUInt8, size, static_cast<uint64_t>(size)));
  }
  for (const Case& made : cases) tasks.push_back(made.task);
  ASSERT_TRUE(Call(&Collectives::AllGather, tasks).ok());
  for (const Case& made : cases) Check(*this, made);
  CheckMargins();
}

// Large enough to be cut into many chunks, and to be written past the caches.
TEST_P(CollectivesConformanceTest, AllGather_LargeOddShards_AreWhole) {
  for (const DType to : {DType::kFloat32, DType::kBFloat16}) {
    Start({1, 4});
    const Case made = MakeCase(*this, DType::kFloat32, to, 1'000'003, 5);
    ASSERT_TRUE(Call(&Collectives::AllGather, std::vector{made.task}).ok());
    Check(*this, made);
    CheckMargins();
  }
}

}  // namespace holdfast
