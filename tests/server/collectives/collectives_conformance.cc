#include "tests/server/collectives/collectives_conformance.h"

#include <thread>

#include "gmock/gmock.h"
#include "tests/common/element/element_reference.h"

namespace holdfast {

using ::testing::HasSubstr;

namespace {

constexpr size_t kMarginBytes = 64;
constexpr std::byte kMargin{0xa5};

}  // namespace

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CollectivesConformanceTest);

std::vector<MeshShape> AllMeshes() {
  std::vector<MeshShape> meshes;
  for (int32_t replicate = 1; replicate <= 8; ++replicate) {
    for (int32_t shard = 1; replicate * shard <= 8; ++shard) meshes.push_back({replicate, shard});
  }
  return meshes;
}

void CollectivesConformanceTest::Start(const MeshShape& mesh) {
  margins_.clear();
  mesh_ = mesh;
  world_ = GetParam().create(mesh);
  ASSERT_NE(world_, nullptr);
}

CollectivesConformanceTest::Buffer CollectivesConformanceTest::Place(Rank rank, const std::vector<std::byte>& bytes) {
  std::byte* const address = world_->Allocate(rank, bytes.size() + kMarginBytes);
  const std::vector<std::byte> margin(kMarginBytes, kMargin);
  if (!bytes.empty()) world_->Upload(address, bytes.data(), bytes.size());
  world_->Upload(address + bytes.size(), margin.data(), margin.size());
  margins_.push_back(address + bytes.size());
  return {address, bytes.size()};
}

std::vector<std::byte> CollectivesConformanceTest::Fetch(const Buffer& buffer) {
  std::vector<std::byte> bytes(buffer.size_bytes);
  if (!bytes.empty()) world_->Download(bytes.data(), buffer.address, buffer.size_bytes);
  return bytes;
}

void CollectivesConformanceTest::CheckMargins() {
  for (std::byte* margin : margins_) {
    ASSERT_EQ(Fetch({margin, kMarginBytes}), std::vector<std::byte>(kMarginBytes, kMargin));
  }
}

absl::Status CollectivesConformanceTest::OnEveryNode(absl::FunctionRef<absl::Status(int, Collectives&)> call) {
  std::vector<absl::Status> statuses(static_cast<size_t>(world_->num_nodes()));
  std::vector<std::thread> others;
  for (int node = 1; node < world_->num_nodes(); ++node) {
    others.emplace_back([&, node] { statuses[static_cast<size_t>(node)] = call(node, world_->node(node)); });
  }
  statuses[0] = call(0, world_->node(0));
  for (std::thread& other : others) other.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

TEST_P(CollectivesConformanceTest, Mesh_IsTheOneAskedFor) {
  Start({2, 3});
  EXPECT_EQ(world().node(0).mesh().num_replicate, 2);
  EXPECT_EQ(world().node(0).mesh().num_shard, 3);
}

TEST_P(CollectivesConformanceTest, AllReduce_SumsInRankOrderOnEveryRank) {
  for (const MeshShape& mesh : AllMeshes()) {
    for (const int64_t count : {0, 1, 3, 1001}) {
      Start(mesh);
      AllReduceTask task{.num_values = count};
      std::vector<Buffer> buffers;
      std::vector<double> expected(static_cast<size_t>(count), 0.0);
      for (int32_t rank = 0; rank < num_ranks(); ++rank) {
        const std::vector<double> values =
            testing::RandomValues(DType::kFloat64, count, static_cast<uint64_t>(rank) + 1);
        for (size_t i = 0; i < values.size(); ++i) expected[i] = rank == 0 ? values[i] : expected[i] + values[i];
        buffers.push_back(Place(Rank(rank), testing::EncodeAll(DType::kFloat64, values)));
        task.parts.push_back({Rank(rank), reinterpret_cast<double*>(buffers.back().address)});
      }
      ASSERT_TRUE(Call(&Collectives::AllReduce, std::vector<AllReduceTask>{task}).ok());
      for (const Buffer& buffer : buffers) {
        ASSERT_EQ(Fetch(buffer), testing::EncodeAll(DType::kFloat64, expected));
      }
      CheckMargins();
    }
  }
}

TEST_P(CollectivesConformanceTest, Broadcast_GivesEveryRankTheRootsBytes) {
  for (const MeshShape& mesh : AllMeshes()) {
    for (const int64_t size : {0, 1, 63, 65, 300'007}) {
      Start(mesh);
      const Rank root(num_ranks() - 1);
      BroadcastTask task{.root = root, .size_bytes = size};
      std::vector<Buffer> buffers;
      std::vector<std::byte> expected;
      for (int32_t rank = 0; rank < num_ranks(); ++rank) {
        std::vector<std::byte> bytes(static_cast<size_t>(size));
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + static_cast<size_t>(rank));
        if (Rank(rank) == root) expected = bytes;
        buffers.push_back(Place(Rank(rank), bytes));
        task.parts.push_back({Rank(rank), buffers.back().address});
      }
      ASSERT_TRUE(Call(&Collectives::Broadcast, std::vector<BroadcastTask>{task}).ok());
      for (const Buffer& buffer : buffers) ASSERT_EQ(Fetch(buffer), expected);
      CheckMargins();
    }
  }
}

TEST_P(CollectivesConformanceTest, NoTasks_AreDoneAtOnce) {
  Start({1, 2});
  EXPECT_TRUE(Call(&Collectives::AllGather, std::vector<AllGatherTask>{}).ok());
  EXPECT_TRUE(Call(&Collectives::ReduceScatter, std::vector<ReduceScatterTask>{}).ok());
  EXPECT_TRUE(OnEveryNode([](int, Collectives& node) { return node.Barrier(); }).ok());
}

TEST_P(CollectivesConformanceTest, Abort_EndsEveryLaterCallWithTheFirstReason) {
  Start({1, 2});
  OnEveryNode([](int, Collectives& node) {
    node.Abort(absl::AbortedError("rank 1 left"));
    node.Abort(absl::InternalError("too late"));
    return absl::OkStatus();
  }).IgnoreError();
  double values[2] = {1, 2};
  const AllReduceTask reduce{1, {{Rank(0), &values[0]}, {Rank(1), &values[1]}}};
  const AllGatherTask gather{DType::kFloat32, DType::kFloat32, 0, {{Rank(0)}, {Rank(1)}}};
  const ReduceScatterTask scatter{DType::kFloat32, DType::kFloat32, 0, false, {{Rank(0)}, {Rank(1)}}};
  const BroadcastTask broadcast{Rank(0), 0, {{Rank(0)}, {Rank(1)}}};
  const absl::Status statuses[] = {
      Call(&Collectives::AllReduce, std::vector{reduce}),
      Call(&Collectives::AllGather, std::vector{gather}),
      Call(&Collectives::ReduceScatter, std::vector{scatter}),
      Call(&Collectives::Broadcast, std::vector{broadcast}),
      OnEveryNode([](int, Collectives& node) { return node.Barrier(); }),
  };
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 left"));
  }
  EXPECT_EQ(values[0], 1);
}

// Refused by each node on its own, before it talks to another.
TEST_P(CollectivesConformanceTest, BadTask_IsRefusedAndNothingIsDone) {
  Start({1, 2});
  constexpr DType kFloat = DType::kFloat32;
  std::vector<std::byte*> data;
  for (int32_t rank = 0; rank < 2; ++rank) data.push_back(Place(Rank(rank), std::vector<std::byte>(64)).address);
  const auto gather = [&](DType from, DType to, int64_t elements, std::vector<AllGatherTask::Part> parts) {
    return world().node(0).AllGather({AllGatherTask{from, to, elements, parts}}).code();
  };
  const auto reduce = [&](DType dtype, DType master, int64_t elements, std::vector<ReduceScatterTask::Part> parts) {
    return world().node(0).ReduceScatter({ReduceScatterTask{dtype, master, elements, false, parts}}).code();
  };
  const auto broadcast = [&](int32_t root, int64_t size, std::vector<BroadcastTask::Part> parts) {
    return world().node(0).Broadcast({BroadcastTask{Rank(root), size, parts}}).code();
  };
  const auto sum = [&](int64_t count, std::vector<AllReduceTask::Part> parts) {
    return world().node(0).AllReduce({AllReduceTask{count, parts}}).code();
  };
  constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
  const AllGatherTask::Part g0{Rank(0), data[0], data[1]}, g1{Rank(1), data[1], data[0]};
  EXPECT_EQ(gather(kFloat, kFloat, 1, {g1, g0}), kInvalid);
  EXPECT_EQ(gather(kFloat, kFloat, 1, {g0, g1, g1}), kInvalid);
  EXPECT_EQ(gather(kFloat, kFloat, 1, {}), kInvalid);
  EXPECT_EQ(gather(kFloat, kFloat, -1, {g0, g1}), kInvalid);
  EXPECT_EQ(gather(kFloat, DType::kInt32, 1, {g0, g1}), kInvalid);
  EXPECT_EQ(gather(DType::kUnspecified, DType::kUnspecified, 1, {g0, g1}), kInvalid);
  EXPECT_EQ(gather(kFloat, kFloat, 1, {{Rank(0), nullptr, data[1]}, {Rank(1), nullptr, data[0]}}), kInvalid);

  const ReduceScatterTask::Part r0{Rank(0), data[0], data[1]}, r1{Rank(1), data[1], data[0]};
  EXPECT_EQ(reduce(kFloat, kFloat, 1, {r1, r0}), kInvalid);
  EXPECT_EQ(reduce(kFloat, kFloat, 1, {r0, r1, r1}), kInvalid);
  EXPECT_EQ(reduce(kFloat, kFloat, -1, {r0, r1}), kInvalid);
  EXPECT_EQ(reduce(DType::kInt32, kFloat, 1, {r0, r1}), kInvalid);
  EXPECT_EQ(reduce(kFloat, DType::kUInt8, 1, {r0, r1}), kInvalid);
  EXPECT_EQ(reduce(kFloat, kFloat, 1, {{Rank(0), nullptr, data[1]}, {Rank(1), nullptr, data[0]}}), kInvalid);
  EXPECT_EQ(reduce(kFloat, kFloat, 1, {{Rank(0), data[0], nullptr}, {Rank(1), data[1], nullptr}}), kInvalid);

  const BroadcastTask::Part b0{Rank(0), data[0]}, b1{Rank(1), data[1]};
  EXPECT_EQ(broadcast(0, 1, {b1, b0}), kInvalid);
  EXPECT_EQ(broadcast(2, 1, {b0, b1}), kInvalid);
  EXPECT_EQ(broadcast(-1, 1, {b0, b1}), kInvalid);
  EXPECT_EQ(broadcast(0, -1, {b0, b1}), kInvalid);
  EXPECT_EQ(broadcast(0, 1, {{Rank(0), nullptr}, {Rank(1), nullptr}}), kInvalid);

  EXPECT_EQ(sum(1, {{Rank(1), reinterpret_cast<double*>(data[1])}}), kInvalid);
  EXPECT_EQ(sum(-1, {{Rank(0), reinterpret_cast<double*>(data[0])}, {Rank(1), reinterpret_cast<double*>(data[1])}}),
            kInvalid);
  EXPECT_EQ(sum(1, {{Rank(0), nullptr}, {Rank(1), nullptr}}), kInvalid);
  for (std::byte* address : data) EXPECT_EQ(Fetch({address, 64}), std::vector<std::byte>(64));
}

}  // namespace holdfast
