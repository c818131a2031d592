#include "server/core/registry.h"

#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/collectives/local_collectives.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr MeshShape kMesh = {.num_replicate = 1, .num_shard = 2};

class RegistryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Registry> Create(int64_t memory_limit_bytes = 0) {
    return std::make_unique<Registry>(
        std::vector<Device*>(2, device_.get()),
        [this](const MeshShape& mesh) -> absl::StatusOr<std::unique_ptr<Collectives>> {
          return LocalCollectives::Create(mesh, pool_.get());
        },
        observer_, RegistryOptions{.memory_limit_bytes = memory_limit_bytes, .pull_staging_bytes = 1 << 20});
  }
  static v1::ModelSpec Named(const std::string& name) {
    v1::ModelSpec spec = SmallModel(kMesh);
    spec.set_name(name);
    return spec;
  }
  static int64_t BytesOfModel() { return ModelLayout::Create(SmallModel(kMesh), 2)->BytesPerRank() * 2; }

  const std::unique_ptr<WorkerPool> pool_ = *WorkerPool::Create(1);
  const std::unique_ptr<CpuDevice> device_ = *CpuDevice::Create(pool_.get());
  RecordingObserver observer_;
};

TEST_F(RegistryTest, RegistersAndFindsModelsInTheOrderOfTheirNames) {
  const std::unique_ptr<Registry> registry = Create();
  for (const char* name : {"b", "a"}) {
    const absl::StatusOr<Registry::Registered> registered = registry->Register(Named(name));
    ASSERT_THAT(registered, IsOk());
    EXPECT_TRUE(registered->created);
    EXPECT_EQ(registered->model->layout().name(), name);
  }
  std::vector<std::string> names;
  for (const std::shared_ptr<Model>& model : registry->models()) names.push_back(model->layout().name());
  EXPECT_THAT(names, ElementsAre("a", "b"));
  EXPECT_EQ((*registry->Find("b"))->layout().name(), "b");
  EXPECT_EQ(registry->memory_used_bytes(), 2 * BytesOfModel());
  EXPECT_THAT(registry->Find("c"),
              FailsWith(absl::StatusCode::kNotFound, "no model 'c' is registered; registered: 'a', 'b'"));
}

TEST_F(RegistryTest, TheSameSpecAgainIsTheSameModel) {
  const std::unique_ptr<Registry> registry = Create();
  const Model* first = registry->Register(Named("m"))->model.get();
  const absl::StatusOr<Registry::Registered> again = registry->Register(Named("m"));
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->model.get(), first);
  EXPECT_THAT(observer_.record().registered, ElementsAre("m"));
}

TEST_F(RegistryTest, ASpecThatSaysTheDefaultsIsTheSame) {
  const std::unique_ptr<Registry> registry = Create();
  v1::ModelSpec spec = Named("m");
  spec.mutable_emas(0)->set_update_every(1);
  ASSERT_THAT(registry->Register(Named("m")), IsOk());
  const absl::StatusOr<Registry::Registered> again = registry->Register(spec);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->created);
}

TEST_F(RegistryTest, AnotherSpecUnderTheNameIsRefusedWithTheDifference) {
  const std::unique_ptr<Registry> registry = Create();
  ASSERT_THAT(registry->Register(Named("m")), IsOk());
  v1::ModelSpec other = Named("m");
  other.mutable_units(1)->mutable_parameters(0)->set_shape(0, 14);
  const absl::Status status = registry->Register(other).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kAlreadyExists, "another model is registered as 'm'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("14"));
  EXPECT_EQ((*registry->Find("m"))->layout().spec().units(1).parameters(0).shape(0), 13);
}

TEST_F(RegistryTest, AWrongSpecIsRefusedAndKeepsNothing) {
  const std::unique_ptr<Registry> registry = Create();
  v1::ModelSpec spec = Named("m");
  spec.mutable_mesh()->set_num_shard(3);
  EXPECT_THAT(registry->Register(spec), FailsWith(absl::StatusCode::kInvalidArgument, "mesh"));
  EXPECT_THAT(registry->models(), IsEmpty());
  EXPECT_THAT(observer_.record().registered, IsEmpty());
}

TEST_F(RegistryTest, WhatExceedsTheLimitIsRefusedWithTheBytesByPurpose) {
  const std::unique_ptr<Registry> registry = Create(2 * BytesOfModel() - 1);
  ASSERT_THAT(registry->Register(Named("first")), IsOk());
  const absl::Status status = registry->Register(Named("second")).status();
  EXPECT_THAT(status, FailsWith(absl::StatusCode::kResourceExhausted,
                                absl::StrCat("model 'second' needs ", BytesOfModel(), " bytes on 2 ranks")));
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("of which ", BytesOfModel(), " are taken")));
  for (const v1::MemoryUse& use : ModelLayout::Create(SmallModel(kMesh), 2)->Memory()) {
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(v1::MemoryPurpose_Name(use.purpose()), " ", use.size_bytes())));
  }
  EXPECT_THAT(registry->Find("second"), FailsWith(absl::StatusCode::kNotFound, ""));
  EXPECT_EQ(registry->memory_used_bytes(), BytesOfModel());
  // The same spec is still the same model, full or not; and room is made by a drop.
  EXPECT_THAT(registry->Register(Named("first")), IsOk());
  EXPECT_EQ(*registry->Drop("first", /*force=*/false), BytesOfModel());
  EXPECT_EQ(registry->memory_used_bytes(), 0);
  EXPECT_THAT(registry->Register(Named("second")), IsOk());
}

TEST_F(RegistryTest, WhatTheDeviceCannotHoldIsRefusedBeforeItIsTaken) {
  const std::unique_ptr<Registry> registry = Create();
  v1::ModelSpec spec = Named("huge");
  spec.mutable_units(1)->mutable_parameters(0)->set_shape(0, int64_t{1} << 38);
  EXPECT_THAT(registry->Register(spec), FailsWith(absl::StatusCode::kResourceExhausted, "bytes on device cpu"));
  EXPECT_THAT(registry->models(), IsEmpty());
}

TEST_F(RegistryTest, CollectivesThatCannotBeHadLeaveNothing) {
  Registry registry(
      std::vector<Device*>(2, device_.get()),
      [](const MeshShape&) -> absl::StatusOr<std::unique_ptr<Collectives>> {
        return absl::UnavailableError("no peers");
      },
      observer_, RegistryOptions{});
  EXPECT_THAT(registry.Register(Named("m")), FailsWith(absl::StatusCode::kUnavailable, "no peers"));
  EXPECT_THAT(registry.models(), IsEmpty());
}

TEST_F(RegistryTest, AModelWithWorkersIsDroppedByForceOnly) {
  const std::unique_ptr<Registry> registry = Create();
  std::unique_ptr<TestWorker> worker;
  {
    const std::shared_ptr<Model> model = registry->Register(Named("m"))->model;
    worker = *TestWorker::Attach(*model, Rank(0), 7);
  }
  EXPECT_THAT(registry->Drop("m", /*force=*/false),
              FailsWith(absl::StatusCode::kFailedPrecondition, "1 workers hold leases on model 'm'"));
  EXPECT_THAT(registry->Find("m"), IsOk());
  EXPECT_EQ(*registry->Drop("m", /*force=*/true), BytesOfModel());
  EXPECT_THAT(registry->Find("m"), FailsWith(absl::StatusCode::kNotFound, "registered: none"));
  ASSERT_EQ(worker->listener().revoked().size(), 1u);
  EXPECT_THAT(worker->listener().revoked()[0], FailsWith(absl::StatusCode::kAborted, "model 'm' was dropped"));
  EXPECT_THAT(observer_.record().dropped, ElementsAre("m"));
  EXPECT_THAT(registry->Drop("m", /*force=*/true), FailsWith(absl::StatusCode::kNotFound, "no model 'm'"));
}

TEST_F(RegistryTest, ADropAnswersTheCallsThatWait) {
  const std::unique_ptr<Registry> registry = Create();
  Pending<Nothing> begun;
  std::unique_ptr<TestWorker> worker;
  Pending<Step> committed;
  {
    const std::shared_ptr<Model> model = registry->Register(Named("m"))->model;
    worker = *TestWorker::Attach(*model, Rank(0), 7);
    ASSERT_THAT(worker->BeginUpdate(UpdateKind::kInitialize).Wait(), IsOk());
    committed = worker->CommitUpdate();
  }
  ASSERT_THAT(registry->Drop("m", /*force=*/true), IsOk());
  EXPECT_THAT(committed.Wait(), FailsWith(absl::StatusCode::kAborted, "model 'm' was dropped"));
}

TEST_F(RegistryTest, ADropWaitsForWhoeverHasTheModelInHand) {
  const std::unique_ptr<Registry> registry = Create();
  std::shared_ptr<Model> in_hand = registry->Register(Named("m"))->model;
  std::thread dropper([&] { EXPECT_THAT(registry->Drop("m", /*force=*/true), IsOk()); });
  while (registry->Find("m").ok()) std::this_thread::yield();
  // It still works, as it has not ended.
  EXPECT_EQ(in_hand->position().epoch, Epoch(1));
  EXPECT_THAT(observer_.record().dropped, IsEmpty());
  in_hand.reset();
  dropper.join();
  EXPECT_THAT(observer_.record().dropped, ElementsAre("m"));
}

TEST_F(RegistryTest, OfManyThatRegisterAtOnceOneCreatesTheModel) {
  const std::unique_ptr<Registry> registry = Create(BytesOfModel());
  std::vector<std::thread> threads;
  std::vector<absl::StatusOr<Registry::Registered>> results(4, absl::UnknownError(""));
  for (auto& result : results) threads.emplace_back([&] { result = registry->Register(Named("m")); });
  for (std::thread& thread : threads) thread.join();
  int created = 0;
  for (const auto& result : results) {
    ASSERT_THAT(result, IsOk());
    created += result->created ? 1 : 0;
  }
  EXPECT_EQ(created, 1);
}

TEST_F(RegistryTest, DrainingRefusesNewModelsAndTellsLeaseHolders) {
  const std::unique_ptr<Registry> registry = Create();
  const std::shared_ptr<Model> model = registry->Register(Named("m"))->model;
  const std::unique_ptr<TestWorker> worker = *TestWorker::Attach(*model, Rank(0), 7);
  EXPECT_THAT(registry->CheckNotDraining(), IsOk());
  registry->StartDrain();
  EXPECT_TRUE(registry->draining());
  EXPECT_THAT(registry->CheckNotDraining(), FailsWith(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_THAT(registry->Register(Named("n")), FailsWith(absl::StatusCode::kUnavailable, "draining"));
  EXPECT_THAT(registry->Register(Named("m")), IsOk());
  ASSERT_EQ(worker->listener().events().size(), 1u);
  EXPECT_TRUE(worker->listener().events()[0].draining);
  EXPECT_EQ(worker->listener().events()[0].epoch, Epoch(1));
  // The past as a deadline makes it a look.
  EXPECT_FALSE(registry->AwaitNoLeases(absl::InfinitePast()));
  worker->Die();
  EXPECT_TRUE(registry->AwaitNoLeases(absl::InfiniteFuture()));
}

TEST_F(RegistryTest, MemoryIsClaimedByTokenOnceAndGivenBackByIt) {
  const std::unique_ptr<Registry> registry = Create();
  const std::shared_ptr<Model> model = registry->Register(Named("m"))->model;
  const auto listener = std::make_shared<RecordingListener>();
  const absl::StatusOr<Attachment> attachment = model->Attach(Rank(1), 7, listener);
  ASSERT_THAT(attachment, IsOk());
  EXPECT_THAT(registry->ClaimMemory("guess", 7), FailsWith(absl::StatusCode::kPermissionDenied, "memory token"));
  const absl::StatusOr<std::vector<UniqueFd>> claimed = registry->ClaimMemory(attachment->memory_token, 7);
  ASSERT_THAT(claimed, IsOk());
  EXPECT_EQ(claimed->size(), attachment->arenas.size());
  EXPECT_THAT(registry->ClaimMemory(attachment->memory_token, 7),
              FailsWith(absl::StatusCode::kFailedPrecondition, "has been claimed"));

  registry->ProcessDied(attachment->memory_token, 7);
  ASSERT_EQ(listener->revoked().size(), 1u);
  EXPECT_THAT(listener->revoked()[0], FailsWith(absl::StatusCode::kAborted, "rank 1 (process 7) died at step 0"));
  EXPECT_EQ(model->NumLeases(), 0);
  EXPECT_THAT(registry->ClaimMemory(attachment->memory_token, 7),
              FailsWith(absl::StatusCode::kPermissionDenied, "attach again"));
  // An unknown token is nobody's business.
  registry->ConnectionClosed(attachment->memory_token);
  registry->ProcessDied("guess", 7);
}

TEST_F(RegistryTest, AClosedMemoryConnectionEndsALeaseThatIsHeld) {
  const std::unique_ptr<Registry> registry = Create();
  const std::shared_ptr<Model> model = registry->Register(Named("m"))->model;
  const std::unique_ptr<TestWorker> worker = *TestWorker::Attach(*model, Rank(0), 7);
  registry->ConnectionClosed(worker->attachment().memory_token);
  ASSERT_EQ(worker->listener().revoked().size(), 1u);
  EXPECT_THAT(worker->listener().revoked()[0], FailsWith(absl::StatusCode::kAborted, "gave its memory back"));
  EXPECT_THAT(TestWorker::Attach(*model, Rank(0), 8), IsOk());
}

}  // namespace
}  // namespace holdfast
