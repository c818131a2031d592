// Workers of a small model on a real daemon, each rank in a thread of its own.
#include "client/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "client/initial_values.h"
#include "tests/client/test_rank_memory.h"
#include "tests/integration/status_matchers.h"
#include "tests/integration/test_cluster.h"

namespace holdfast {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr UnitIndex kRoot(0), kLayer(1);

TensorsByName Values(float first) {
  return {{"embed.weight", torch::arange(15, at::kFloat).view({5, 3}) + first},
          {"norm.scale", torch::tensor(4.0F)},
          {"positions", torch::arange(4)},
          {"layer.weight", torch::arange(10, at::kFloat).view({2, 5}) - first},
          {"layer.none", torch::empty({0, 3})},
          {"layer.bias", torch::ones(3)},
          {"layer.mean", torch::ones({2, 2})}};
}

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cluster = TestCluster::Start({.num_ranks = 2});
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
    ASSERT_THAT(client_->RegisterModel(SmallModelSpec()), IsOk());
    for (const Rank rank : {Rank(0), Rank(1)}) {
      auto worker = client_->Attach("small", rank);
      ASSERT_THAT(worker, IsOk());
      workers_.push_back(*std::move(worker));
    }
  }

  std::unique_ptr<Client> Connect() {
    ClientOptions options;
    options.address = cluster_->worker_socket();
    options.on_progress = [this](std::string_view line) {
      absl::MutexLock lock(&mu_);
      progress_.emplace_back(line);
    };
    auto client = Client::Connect(options);
    EXPECT_THAT(client, IsOk());
    return client.ok() ? *std::move(client) : nullptr;
  }

  // Runs `work` of every rank at once; the statuses by rank.
  std::vector<absl::Status> OnEveryRank(const std::function<absl::Status(Worker&)>& work) {
    std::vector<absl::Status> statuses(workers_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < workers_.size(); ++i) {
      threads.emplace_back([&, i] { statuses[i] = work(*workers_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  void InitializeAll() {
    ASSERT_THAT(OnEveryRank([](Worker& worker) { return worker.Initialize(Values(0)); }), ElementsAre(IsOk(), IsOk()));
  }
  void RejoinAll() {
    ASSERT_THAT(OnEveryRank([](Worker& worker) { return worker.Rejoin().status(); }), ElementsAre(IsOk(), IsOk()));
  }

  at::Tensor Pulled(const std::string& name, const std::string& ema = "") {
    const auto tensors = client_->Pull("small", {.names = {name}, .ema = ema});
    EXPECT_THAT(tensors, IsOk());
    return tensors.ok() && tensors->size() == 1 ? (*tensors)[0].tensor : at::Tensor();
  }

  // Adds 1 to every trainable parameter.
  static absl::Status TrainStep(Worker& worker) {
    if (absl::Status status = worker.BeginUpdate(); !status.ok()) return status;
    for (const UnitShards& unit : worker.shards()) unit.flat_parameters[0].parameter.add_(1);
    return worker.CommitUpdate(/*ema_step=*/true).status();
  }

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<Worker>> workers_;
  absl::Mutex mu_;
  std::vector<std::string> progress_ ABSL_GUARDED_BY(mu_);
};

TEST_F(WorkerTest, Initialize_IsWhatGatherAndPullShow) {
  InitializeAll();
  const auto statuses = OnEveryRank([](Worker& worker) -> absl::Status {
    auto root = worker.Gather("root", {"layer"});
    if (!root.ok()) return root.status();
    EXPECT_TRUE(root->Find("embed.weight")->to(at::kFloat).equal(Values(0).at("embed.weight")));
    EXPECT_TRUE(root->Find("head.weight")->equal(*root->Find("embed.weight")));
    EXPECT_EQ(root->Find("norm.scale")->item<float>(), 4);
    auto layer = worker.Gather("layer");
    if (!layer.ok()) return layer.status();
    EXPECT_EQ(layer->parameter(0, 0).scalar_type(), at::kBFloat16);
    EXPECT_TRUE(layer->Find("layer.weight")->to(at::kFloat).equal(Values(0).at("layer.weight")));
    EXPECT_TRUE(worker.state().initialized());
    EXPECT_EQ(worker.step(), Step(0));
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ElementsAre(IsOk(), IsOk()));
  EXPECT_TRUE(Pulled("head.weight").equal(Values(0).at("embed.weight")));
  EXPECT_TRUE(Pulled("layer.weight", "default").equal(Values(0).at("layer.weight")));
  EXPECT_TRUE(Pulled("positions").equal(Values(0).at("positions")));
}

TEST_F(WorkerTest, ReduceScatter_IsTheMeanOverRanksAndAccumulates) {
  InitializeAll();
  const auto statuses = OnEveryRank([](Worker& worker) -> absl::Status {
    for (const bool accumulate : {false, true}) {
      auto slot = worker.AcquireGradient("layer");
      if (!slot.ok()) return slot.status();
      slot->Find("layer.weight")->fill_(worker.rank().value() + 1);
      slot->Find("layer.bias")->fill_(worker.rank().value() * 10);
      absl::Status reduced = worker.ReduceScatter(*std::move(slot), accumulate).Wait();
      if (!reduced.ok()) return reduced;
    }
    // 7 elements a shard: rank 0 has weights only, rank 1 three weights, three biases and the padding.
    const at::Tensor gradient = worker.shards()[1].flat_parameters[0].gradient;
    const at::Tensor expected =
        worker.rank() == Rank(0) ? torch::full(7, 3.0F) : torch::tensor({3.F, 3.F, 3.F, 10.F, 10.F, 10.F, 0.F});
    EXPECT_TRUE(gradient.equal(expected)) << gradient;
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ElementsAre(IsOk(), IsOk()));
}

TEST_F(WorkerTest, ManyUnwaitedReductionsAndPrefetches_KeepTheirOrder) {
  InitializeAll();
  const auto statuses = OnEveryRank([](Worker& worker) -> absl::Status {
    for (int step = 0; step < 50; ++step) {
      auto root = worker.Gather(kRoot, {kLayer});
      if (!root.ok()) return root.status();
      worker.Release(kRoot).IgnoreError();
      auto layer = worker.Gather(kLayer, {kRoot});
      if (!layer.ok()) return layer.status();
      for (const UnitIndex unit : {kLayer, kRoot}) {
        auto slot = worker.AcquireGradient(unit);
        if (!slot.ok()) return slot.status();
        slot->Zero();
        // Not waited for: BeginUpdate does it.
        const Future<void> reduced = worker.ReduceScatter(*std::move(slot), false);
      }
      if (absl::Status status = TrainStep(worker); !status.ok()) return status;
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ElementsAre(IsOk(), IsOk()));
  EXPECT_EQ(workers_[0]->step(), Step(50));
  EXPECT_TRUE(Pulled("layer.bias").equal(torch::full(3, 51.0F)));
}

TEST_F(WorkerTest, Commit_MakesGatheredUnitsVoid) {
  InitializeAll();
  const auto statuses = OnEveryRank([](Worker& worker) -> absl::Status {
    if (auto layer = worker.Gather(kLayer, {kRoot}); !layer.ok()) return layer.status();
    if (absl::Status status = TrainStep(worker); !status.ok()) return status;
    auto layer = worker.Gather(kLayer);
    if (!layer.ok()) return layer.status();
    EXPECT_FALSE(layer->hit());
    EXPECT_EQ(layer->Find("layer.bias")->sum().item<float>(), 6);
    return absl::OkStatus();
  });
  EXPECT_THAT(statuses, ElementsAre(IsOk(), IsOk()));
}

TEST_F(WorkerTest, GatherAsync_IsWaitedForInAnotherThread) {
  InitializeAll();
  const auto statuses = OnEveryRank([](Worker& worker) -> absl::Status {
    const Future<GatheredUnit> future = worker.GatherAsync(kLayer);
    absl::Status status;
    std::thread waiter([&] { status = future.Wait().status(); });
    waiter.join();
    return status;
  });
  EXPECT_THAT(statuses, ElementsAre(IsOk(), IsOk()));
}

TEST_F(WorkerTest, Attach_OfAHeldRankIsRefusedAtOnceOrWaitedFor) {
  const auto refused = client_->Attach("small", Rank(1), {.lease_timeout = absl::ZeroDuration()});
  EXPECT_THAT(refused, FailsWith(absl::StatusCode::kAlreadyExists, "rank 1"));
  absl::StatusOr<std::unique_ptr<Worker>> successor = absl::UnknownError("not attached");
  std::thread attaching([&] { successor = client_->Attach("small", Rank(1), {.lease_timeout = absl::Minutes(1)}); });
  workers_.pop_back();
  attaching.join();
  EXPECT_THAT(successor, IsOk());
}

TEST_F(WorkerTest, Attach_WhatDoesNotExistIsRefused) {
  EXPECT_THAT(client_->Attach("other", Rank(0)), FailsWith(absl::StatusCode::kNotFound, "other"));
  EXPECT_THAT(client_->Attach("small", Rank(2)), FailsWith(absl::StatusCode::kInvalidArgument, "rank"));
  EXPECT_THAT(client_->Attach("small", Rank(-1)), FailsWith(absl::StatusCode::kInvalidArgument, "rank -1"));
}

TEST_F(WorkerTest, WorkerEnds_TheOthersHearItAndGoOnWithItsSuccessor) {
  InitializeAll();
  ASSERT_THAT(OnEveryRank(TrainStep), ElementsAre(IsOk(), IsOk()));
  absl::StatusOr<GatheredUnit> gathered = absl::UnknownError("not gathered");
  std::thread survivor([&] { gathered = workers_[0]->Gather(kLayer); });
  workers_.pop_back();
  survivor.join();
  EXPECT_THAT(gathered, FailsWith(absl::StatusCode::kAborted, "rank 1"));
  EXPECT_THAT(workers_[0]->Gather(kRoot), FailsWith(absl::StatusCode::kAborted, "rank 1")) << "until Rejoin";
  auto successor = client_->Attach("small", Rank(1));
  ASSERT_THAT(successor, IsOk());
  workers_.push_back(*std::move(successor));
  const auto state = workers_[0]->Rejoin();
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->step(), 1u);
  EXPECT_THAT(OnEveryRank(TrainStep), ElementsAre(IsOk(), IsOk()));
  EXPECT_TRUE(Pulled("layer.bias").equal(torch::full(3, 3.0F)));
}

TEST_F(WorkerTest, Rejoin_InTheMiddleOfAStepRollsItBackForAll) {
  InitializeAll();
  ASSERT_THAT(OnEveryRank(TrainStep), ElementsAre(IsOk(), IsOk()));
  const at::Tensor parameter = workers_[0]->shards()[1].flat_parameters[0].parameter;
  const at::Tensor committed = parameter.clone();
  // Rank 0 is half-way through its update when it gives up; rank 1 waits for it in its own.
  ASSERT_THAT(workers_[0]->BeginUpdate(), IsOk());
  parameter.fill_(-7);
  absl::Status waiting;
  std::thread other([&] { waiting = TrainStep(*workers_[1]); });
  const auto state = workers_[0]->Rejoin();
  ASSERT_THAT(state, IsOk());
  other.join();
  EXPECT_THAT(waiting, FailsWith(absl::StatusCode::kAborted, "rank 0"));
  EXPECT_EQ(state->step(), 1u);
  EXPECT_TRUE(parameter.equal(committed));
  ASSERT_THAT(workers_[1]->Rejoin(), IsOk());
  EXPECT_THAT(OnEveryRank(TrainStep), ElementsAre(IsOk(), IsOk()));
  EXPECT_TRUE(Pulled("layer.bias").equal(torch::full(3, 3.0F)));
}

TEST_F(WorkerTest, Rejoin_GradientSlotsOfBeforeAreDead) {
  auto slot = workers_[0]->AcquireGradient(kLayer);
  ASSERT_THAT(slot, IsOk());
  RejoinAll();
  EXPECT_THAT(workers_[0]->ReduceScatter(*std::move(slot)).Wait(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "before the last Rejoin"));
  EXPECT_THAT(workers_[0]->status(), IsOk());
}

TEST_F(WorkerTest, Desync_BothRanksAreToldOfBothUnits) {
  InitializeAll();
  const auto statuses =
      OnEveryRank([](Worker& worker) { return worker.Gather(worker.rank() == Rank(0) ? kRoot : kLayer).status(); });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kFailedPrecondition, "'root'"));
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kFailedPrecondition, "'layer'"));
  }
  RejoinAll();
  EXPECT_THAT(OnEveryRank(TrainStep), ElementsAre(IsOk(), IsOk()));
}

TEST_F(WorkerTest, RefusedHere_LeavesTheWorkerInStep) {
  EXPECT_THAT(workers_[0]->Gather("nothing"), FailsWith(absl::StatusCode::kNotFound, "nothing"));
  EXPECT_THAT(workers_[0]->Release("nothing"), FailsWith(absl::StatusCode::kNotFound, "nothing"));
  EXPECT_THAT(workers_[0]->AcquireGradient("nothing"), FailsWith(absl::StatusCode::kNotFound, "nothing"));
  EXPECT_THAT(workers_[0]->EmaStep({"nothing"}), FailsWith(absl::StatusCode::kNotFound, "nothing"));
  TensorsByName values = Values(0);
  values.erase("layer.bias");
  EXPECT_THAT(workers_[0]->Initialize(values), FailsWith(absl::StatusCode::kInvalidArgument, "layer.bias"));
  std::vector<GradientSlot> slots;
  for (int i = 0; i < workers_[0]->layout().gradient_slots(); ++i) {
    slots.push_back(*workers_[0]->AcquireGradient(kLayer));
  }
  EXPECT_THAT(workers_[0]->AcquireGradient(kRoot), FailsWith(absl::StatusCode::kResourceExhausted, "gradient slots"));
  EXPECT_THAT(workers_[0]->status(), IsOk());
  InitializeAll();
}

TEST_F(WorkerTest, Initialize_SourceFailsMidway_RejoinLeavesItUninitialized) {
  const auto statuses = OnEveryRank([](Worker& worker) {
    int num_asked = 0;
    return worker.Initialize([&num_asked](std::string_view name) -> absl::StatusOr<at::Tensor> {
      if (++num_asked == 4) return absl::DataLossError(absl::StrCat("cannot read ", std::string(name)));
      return Values(100).at(std::string(name));
    });
  });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kDataLoss, "cannot read layer.weight"));
  }
  EXPECT_THAT(workers_[0]->Gather(kRoot), FailsWith(absl::StatusCode::kDataLoss, "cannot read layer.weight"));
  RejoinAll();
  EXPECT_FALSE(workers_[0]->state().initialized());
  InitializeAll();
  EXPECT_TRUE(Pulled("embed.weight").equal(Values(0).at("embed.weight")));
}

TEST_F(WorkerTest, Initialize_OfATrainedModelIsRefused) {
  InitializeAll();
  const auto statuses = OnEveryRank([](Worker& worker) { return worker.Initialize(Values(100)); });
  for (const absl::Status& status : statuses) {
    EXPECT_THAT(status, FailsWith(absl::StatusCode::kFailedPrecondition, "has parameters already"));
  }
  RejoinAll();
  EXPECT_TRUE(Pulled("embed.weight").equal(Values(0).at("embed.weight")));
  EXPECT_THAT(OnEveryRank(TrainStep), ElementsAre(IsOk(), IsOk()));
}

TEST_F(WorkerTest, EmaStep_IsAppliedOnce) {
  InitializeAll();
  ASSERT_THAT(OnEveryRank([](Worker& worker) -> absl::Status {
                if (absl::Status status = worker.BeginUpdate(); !status.ok()) return status;
                worker.shards()[1].flat_parameters[0].parameter.add_(1);
                return worker.CommitUpdate().status();
              }),
              ElementsAre(IsOk(), IsOk()));
  std::vector<bool> applied;
  for (int call = 0; call < 2; ++call) {
    for (const auto& worker : workers_) {
      const auto results = worker->EmaStep();
      ASSERT_THAT(results, IsOk());
      ASSERT_EQ(results->size(), 1u);
      EXPECT_EQ((*results)[0].decay(), 0.9);
      applied.push_back((*results)[0].applied());
    }
  }
  EXPECT_EQ(applied, (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(workers_[1]->state().emas(0).step(), 1u);
  EXPECT_TRUE(Pulled("layer.bias", "default").allclose(torch::full(3, 1.1F)));
}

TEST_F(WorkerTest, Pull_ByGlobConvertedAndStreamed) {
  InitializeAll();
  std::vector<std::string> names;
  absl::Status status =
      client_->Pull("small", {.names = {"layer.*"}, .dtype = DType::kBFloat16}, [&](const ModelTensor& pulled) {
        names.push_back(pulled.name);
        EXPECT_EQ(pulled.tensor.scalar_type(), at::kBFloat16) << pulled.name;
        return absl::OkStatus();
      });
  EXPECT_THAT(status, IsOk());
  EXPECT_THAT(names, UnorderedElementsAre("layer.weight", "layer.none", "layer.bias", "layer.mean"));
  status = client_->Pull("small", {}, [](const ModelTensor&) { return absl::CancelledError("enough"); });
  EXPECT_EQ(status, absl::CancelledError("enough"));
  EXPECT_THAT(client_->Pull("small", {.names = {"nothing*"}}), FailsWith(absl::StatusCode::kNotFound, "nothing*"));
  EXPECT_THAT(client_->Pull("other"), FailsWith(absl::StatusCode::kNotFound, "other"));
}

TEST_F(WorkerTest, Sigterm_ShowsAsDraining) {
  workers_.clear();
  Promise<bool> told;
  auto worker = client_->Attach("small", Rank(0), {.on_event = [&told](const v1::GroupEvent& event) {
                                  if (event.draining()) told.Set(true);
                                }});
  ASSERT_THAT(worker, IsOk());
  cluster_->daemon().Signal(SIGTERM);
  EXPECT_TRUE(told.Await(absl::Now() + absl::Minutes(1)).has_value());
  EXPECT_TRUE((*worker)->draining());
  worker->reset();
  EXPECT_EQ(cluster_->daemon().Wait(absl::Now() + absl::Minutes(1))->exit_code, 0);
}

class RestartTest : public WorkerTest {
 protected:
  // Kills the daemon and starts another one in its place; it need not be ready when this returns.
  void RestartDaemon() {
    cluster_->daemon().Kill();
    auto daemon = ChildProcess::Start({.executable = DaemonExecutable(),
                                       .arguments = DaemonFlags(cluster_->directory(), 2),
                                       .error_file = cluster_->directory().File("second.log")});
    ASSERT_THAT(daemon, IsOk());
    restarted_ = *std::move(daemon);
  }

  std::unique_ptr<ChildProcess> restarted_;
};

TEST_F(RestartTest, Rejoin_AttachesAnewAndTheViewsShowTheNewMemory) {
  InitializeAll();
  ASSERT_THAT(OnEveryRank(TrainStep), ElementsAre(IsOk(), IsOk()));
  const at::Tensor kept = workers_[0]->shards()[1].flat_parameters[0].parameter;
  RestartDaemon();
  const auto empty = OnEveryRank([](Worker& worker) { return worker.Rejoin().status(); });
  for (const absl::Status& status : empty) EXPECT_THAT(status, FailsWith(absl::StatusCode::kNotFound, "small"));
  EXPECT_THAT(workers_[0]->Gather(kRoot), FailsWith(absl::StatusCode::kUnavailable, "Rejoin")) << "no lease is held";
  {
    absl::MutexLock lock(&mu_);
    EXPECT_THAT(progress_, Contains(HasSubstr("rank 0 of 'small': the lease is lost; attaching again")));
  }
  // The way the comment of Worker shows.
  const auto statuses = OnEveryRank([this](Worker& worker) -> absl::Status {
    if (auto registered = client_->RegisterModel(SmallModelSpec()); !registered.ok()) return registered.status();
    const auto state = worker.Rejoin();
    if (!state.ok()) return state.status();
    EXPECT_FALSE(state->initialized());
    EXPECT_EQ(state->step(), 0u);
    if (absl::Status status = worker.Initialize(Values(0)); !status.ok()) return status;
    return TrainStep(worker);
  });
  ASSERT_THAT(statuses, ElementsAre(IsOk(), IsOk()));
  EXPECT_EQ(kept.data_ptr(), workers_[0]->shards()[1].flat_parameters[0].parameter.data_ptr());
  EXPECT_TRUE(kept.equal(torch::tensor({1.F, 2.F, 3.F, 4.F, 5.F, 6.F, 7.F})));
}

TEST_F(RestartTest, Rejoin_AnotherModelUnderTheNameIsRefused) {
  RestartDaemon();
  const auto gone = OnEveryRank([](Worker& worker) { return worker.Rejoin().status(); });
  EXPECT_THAT(gone[0], FailsWith(absl::StatusCode::kNotFound, "small"));
  v1::ModelSpec other = SmallModelSpec();
  other.mutable_units(0)->mutable_parameters(0)->set_shape(0, 7);
  other.mutable_units(0)->mutable_parameters(2)->set_shape(0, 7);
  ASSERT_THAT(client_->RegisterModel(other), IsOk());
  EXPECT_THAT(workers_[0]->Rejoin(), FailsWith(absl::StatusCode::kFailedPrecondition, "fingerprint"));
  // The rank is free again for a worker of that model.
  EXPECT_THAT(client_->Attach("small", Rank(0)), IsOk());
}

TEST_F(RestartTest, KilledDaemon_CallsUnderWayFailAndNameTheLoss) {
  InitializeAll();
  absl::Status waiting;
  // Waits for rank 1, which never comes.
  std::thread rank0([&] { waiting = workers_[0]->Gather(kLayer).status(); });
  cluster_->daemon().Kill();
  rank0.join();
  EXPECT_THAT(waiting, FailsWith(absl::StatusCode::kUnavailable, "rank 0 of 'small': Gather('layer')"));
}

}  // namespace
}  // namespace holdfast
