#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "tests/common/element/element_reference.h"
#include "tests/server/collectives/collectives_conformance.h"

namespace holdfast {

using testing::ArithmeticDTypes;
using testing::DecodeAll;
using testing::EncodeAll;
using testing::RoundedTo;
using testing::Spacing;

namespace {

using Buffer = CollectivesConformanceTest::Buffer;

constexpr int64_t kSizes[] = {0, 1, 3, 63, 64, 65};

// A task, what the ranks' gradients and shards were before, and where the shards are.
struct Case {
  ReduceScatterTask task;
  std::vector<std::vector<double>> gradients;
  std::vector<double> before;
  std::vector<Buffer> shards;
};

enum class Values { kIntegers, kReals };

std::vector<double> Draw(Values kind, DType dtype, int64_t count, uint64_t seed) {
  // Sums of 8 of them are exact in every dtype.
  if (kind == Values::kIntegers) return testing::RandomIntegers(count, seed, 16);
  return testing::RandomValues(dtype, count, seed, 4);
}

Case MakeCase(CollectivesConformanceTest& test, Values kind, DType reduce, DType master, int64_t shard_elements,
              bool accumulate, uint64_t seed = 1) {
  const MeshShape& mesh = test.mesh();
  Case made{.task = {reduce, master, shard_elements, accumulate, {}}};
  made.before = Draw(kind, master, shard_elements, seed + 1000);
  for (int32_t rank = 0; rank < mesh.world(); ++rank) {
    made.gradients.push_back(
        Draw(kind, reduce, mesh.num_shard * shard_elements, seed * 100 + static_cast<uint64_t>(rank)));
    made.shards.push_back(test.Place(Rank(rank), EncodeAll(master, made.before)));
    const Buffer gradient = test.Place(Rank(rank), EncodeAll(reduce, made.gradients.back()));
    made.task.parts.push_back({Rank(rank), gradient.address, made.shards.back().address});
  }
  return made;
}

// One element of shard `shard` as collectives.h and local_collectives.h state it, step by step; C is the sum's type.
template <typename C>
double Expected(const Case& made, const MeshShape& mesh, int32_t shard, int64_t element) {
  const DType reduce = made.task.reduce;
  const C predivide = static_cast<C>(GradientPredivideFactor(mesh.world()));
  const size_t place = static_cast<size_t>(shard * made.task.shard_elements + element);
  C total = 0;
  for (int32_t replica = 0; replica < mesh.num_replicate; ++replica) {
    C group = 0;
    for (int32_t peer = 0; peer < mesh.num_shard; ++peer) {
      const size_t rank = static_cast<size_t>(mesh.RankAt(replica, peer).value());
      const C divided = static_cast<C>(made.gradients[rank][place]) / predivide;
      group = peer == 0 ? divided : group + divided;
    }
    group = static_cast<C>(RoundedTo(reduce, group));
    total = replica == 0 ? group : total + group;
  }
  total = static_cast<C>(RoundedTo(reduce, total));
  const double mean = RoundedTo(reduce, total / (static_cast<C>(mesh.world()) / predivide));
  const double converted = RoundedTo(made.task.master, mean);
  if (!made.task.accumulate) return converted;
  const double old = made.before[static_cast<size_t>(element)];
  if (made.task.master == DType::kFloat64) return old + converted;
  return RoundedTo(made.task.master, static_cast<float>(old) + static_cast<float>(converted));
}

double Expected(const Case& made, const MeshShape& mesh, int32_t shard, int64_t element) {
  return made.task.reduce == DType::kFloat64 ? Expected<double>(made, mesh, shard, element)
                                             : Expected<float>(made, mesh, shard, element);
}

// The same in float64 throughout, and how far a result may be from it: for each rounding half a spacing of the largest
// number that it can have rounded.
struct Exact {
  double value;
  double tolerance;
};

Exact ExactMean(const Case& made, const MeshShape& mesh, int32_t shard, int64_t element) {
  const size_t place = static_cast<size_t>(shard * made.task.shard_elements + element);
  double sum = 0;
  double magnitude = 0;
  for (const std::vector<double>& gradient : made.gradients) {
    sum += gradient[place];
    magnitude += std::abs(gradient[place]);
  }
  const double old = made.task.accumulate ? made.before[static_cast<size_t>(element)] : 0;
  const double mean = sum / mesh.world();
  const double divided = magnitude / GradientPredivideFactor(mesh.world());
  const DType sum_dtype = made.task.reduce == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const double stages = (mesh.num_replicate + 2) * Spacing(made.task.reduce, divided);
  const double sums = mesh.world() * Spacing(sum_dtype, divided);
  const double master = 2 * Spacing(made.task.master, std::abs(old) + magnitude / mesh.world() + stages);
  return {old + mean, stages + sums + master};
}

std::string Where(const Case& made, const MeshShape& mesh, int32_t rank, int64_t element) {
  std::ostringstream where;
  where << "rank " << rank << " of " << mesh.num_replicate << " x " << mesh.num_shard << ", " << Name(made.task.reduce)
        << " to " << Name(made.task.master) << ", element " << element << " of " << made.task.shard_elements;
  return where.str();
}

void Check(CollectivesConformanceTest& test, const Case& made) {
  const MeshShape& mesh = test.mesh();
  for (int32_t rank = 0; rank < mesh.world(); ++rank) {
    const std::vector<double> got = DecodeAll(made.task.master, test.Fetch(made.shards[static_cast<size_t>(rank)]));
    for (int64_t i = 0; i < made.task.shard_elements; ++i) {
      const double value = got[static_cast<size_t>(i)];
      const Exact exact = ExactMean(made, mesh, mesh.ShardOf(Rank(rank)), i);
      ASSERT_NEAR(value, exact.value, exact.tolerance) << Where(made, mesh, rank, i);
      ASSERT_EQ(value, Expected(made, mesh, mesh.ShardOf(Rank(rank)), i)) << Where(made, mesh, rank, i);
    }
  }
}

absl::Status Reduce(CollectivesConformanceTest& test, const Case& made) {
  return test.Call(&Collectives::ReduceScatter, std::vector{made.task});
}

}  // namespace

TEST_P(CollectivesConformanceTest, ReduceScatter_EveryMeshDTypesAndOddSizes_IsTheMeanAsStated) {
  for (const MeshShape& mesh : AllMeshes()) {
    Start(mesh);
    for (const DType reduce : ArithmeticDTypes()) {
      for (const DType master : ArithmeticDTypes()) {
        for (const int64_t size : kSizes) {
          for (const bool accumulate : {false, true}) {
            const Case made = MakeCase(*this, Values::kReals, reduce, master, size, accumulate);
            ASSERT_TRUE(Reduce(*this, made).ok());
            Check(*this, made);
          }
        }
      }
    }
    CheckMargins();
  }
}

TEST_P(CollectivesConformanceTest, ReduceScatter_OfSmallIntegersOverPowersOfTwo_IsExact) {
  for (const MeshShape& mesh : AllMeshes()) {
    if ((mesh.world() & (mesh.world() - 1)) != 0) continue;
    for (const DType reduce : ArithmeticDTypes()) {
      Start(mesh);
      const Case made = MakeCase(*this, Values::kIntegers, reduce, DType::kFloat32, 65, false);
      ASSERT_TRUE(Reduce(*this, made).ok());
      for (int32_t rank = 0; rank < num_ranks(); ++rank) {
        const std::vector<double> got = DecodeAll(DType::kFloat32, Fetch(made.shards[static_cast<size_t>(rank)]));
        for (int64_t i = 0; i < 65; ++i) {
          const double exact = ExactMean(made, mesh, mesh.ShardOf(Rank(rank)), i).value;
          ASSERT_EQ(got[static_cast<size_t>(i)], exact) << Name(reduce);
        }
      }
    }
  }
}

TEST_P(CollectivesConformanceTest, ReduceScatter_AgainFromTheSameStart_GivesTheSameBits) {
  Start({2, 3});
  for (const DType reduce : {DType::kBFloat16, DType::kFloat32}) {
    std::vector<std::vector<std::byte>> results;
    for (int run = 0; run < 3; ++run) {
      const Case made = MakeCase(*this, Values::kReals, reduce, DType::kFloat32, 70'001, true);
      ASSERT_TRUE(Reduce(*this, made).ok());
      for (const int32_t rank : {0, 3}) results.push_back(Fetch(made.shards[static_cast<size_t>(rank)]));
    }
    // Rank 3 is rank 0's replica.
    for (const std::vector<std::byte>& result : results) ASSERT_EQ(result, results[0]);
  }
}

TEST_P(CollectivesConformanceTest, ReduceScatter_SeveralTasks_AreOneCall) {
  Start({2, 2});
  std::vector<Case> cases;
  std::vector<ReduceScatterTask> tasks;
  for (const int64_t size : {5, 0, 1000, 70'001, 1}) {
    cases.push_back(MakeCase(*this, Values::kReals, DType::kBFloat16, DType::kFloat32, size, size % 2 == 0));
    tasks.push_back(cases.back().task);
  }
  ASSERT_TRUE(Call(&Collectives::ReduceScatter, tasks).ok());
  for (const Case& made : cases) Check(*this, made);
  CheckMargins();
}

TEST_P(CollectivesConformanceTest, ReduceScatter_LargeOddShards_AreWhole) {
  Start({1, 2});
  const Case made = MakeCase(*this, Values::kReals, DType::kBFloat16, DType::kFloat32, 1'000'003, false);
  ASSERT_TRUE(Reduce(*this, made).ok());
  Check(*this, made);
  CheckMargins();
}

// 8 · 30000 is more than float16 holds; divided by 4 beforehand it is not.
TEST_P(CollectivesConformanceTest, ReduceScatter_Float16SumBeyondTheLargest_SurvivesByPredivision) {
  for (const MeshShape& mesh : {MeshShape{1, 8}, MeshShape{2, 4}, MeshShape{8, 1}}) {
    Start(mesh);
    Case made = MakeCase(*this, Values::kIntegers, DType::kFloat16, DType::kFloat32, 3, false);
    for (int32_t rank = 0; rank < num_ranks(); ++rank) {
      const std::vector<double> large(static_cast<size_t>(3 * mesh.num_shard), 30000.0);
      made.task.parts[static_cast<size_t>(rank)].gradient =
          Place(Rank(rank), EncodeAll(DType::kFloat16, large)).address;
    }
    ASSERT_TRUE(Reduce(*this, made).ok());
    for (const Buffer& shard : made.shards) {
      EXPECT_EQ(DecodeAll(DType::kFloat32, Fetch(shard)), std::vector<double>(3, 30000.0));
    }
  }
}

TEST_P(CollectivesConformanceTest, ReduceScatter_NonFiniteGradients_StayNonFinite) {
  Start({1, 2});
  Case made = MakeCase(*this, Values::kIntegers, DType::kBFloat16, DType::kFloat32, 2, false);
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::byte> bad = EncodeAll(DType::kBFloat16, {infinity, nan, 1, -infinity});
  made.task.parts[1].gradient = Place(Rank(1), bad).address;
  ASSERT_TRUE(Reduce(*this, made).ok());
  const std::vector<double> first = DecodeAll(DType::kFloat32, Fetch(made.shards[0]));
  const std::vector<double> second = DecodeAll(DType::kFloat32, Fetch(made.shards[1]));
  EXPECT_EQ(first[0], infinity);
  EXPECT_TRUE(std::isnan(first[1]));
  EXPECT_TRUE(std::isfinite(second[0]));
  EXPECT_EQ(second[1], -infinity);
}

}  // namespace holdfast
