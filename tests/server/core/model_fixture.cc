#include "tests/server/core/model_fixture.h"

#include <google/protobuf/text_format.h>

#include <utility>

namespace holdfast {
namespace {

constexpr char kSmallModel[] = R"pb(
  name: "small"
  units {
    name: "root"
    parameters {
      name: "embed"
      shape: [ 7, 5 ]
      dtype: DATA_TYPE_FLOAT32
    }
    parameters { name: "scale" dtype: DATA_TYPE_FLOAT32 }
    parameters {
      name: "empty"
      shape: [ 0, 4 ]
      dtype: DATA_TYPE_FLOAT32
    }
    parameters { name: "positions" shape: 11 dtype: DATA_TYPE_FLOAT32 frozen: true }
    buffers { name: "mean" shape: 3 dtype: DATA_TYPE_FLOAT32 }
    buffers { name: "count" dtype: DATA_TYPE_INT64 }
    buffers { name: "none" shape: 0 dtype: DATA_TYPE_FLOAT32 }
  }
  units {
    name: "block"
    parameters {
      name: "block.weight"
      shape: [ 13, 3 ]
      dtype: DATA_TYPE_FLOAT32
    }
    parameters { name: "block.mask" shape: 5 dtype: DATA_TYPE_FLOAT16 frozen: true }
    parameters { name: "block.bias" shape: 13 dtype: DATA_TYPE_FLOAT32 }
  }
  units {
    name: "tiny"
    parameters { name: "tiny.gain" shape: 1 dtype: DATA_TYPE_FLOAT32 }
  }
  units {
    name: "head"
    parameters {
      name: "head.weight"
      shape: [ 7, 5 ]
      dtype: DATA_TYPE_FLOAT32
      alias_of: "embed"
    }
    parameters { name: "head.bias" shape: 7 dtype: DATA_TYPE_FLOAT32 }
  }
  units {
    name: "table"
    parameters { name: "table.ids" shape: 9 dtype: DATA_TYPE_INT64 frozen: true }
  }
  units {
    name: "bare"
    buffers { name: "bare.flags" shape: 5 dtype: DATA_TYPE_BOOL }
  }
  precision { param: DATA_TYPE_BFLOAT16 reduce: DATA_TYPE_FLOAT32 master: DATA_TYPE_FLOAT32 }
  emas {
    name: "default"
    constant { decay: 0.5 }
  }
  emas {
    name: "slow"
    dtype: DATA_TYPE_FLOAT64
    constant { decay: 0.75 }
    update_every: 2
  }
  emas {
    name: "half"
    dtype: DATA_TYPE_BFLOAT16
    constant { decay: 0.5 }
  }
  optimizer {
    worker {
      states { name: "exp_avg" }
      states { name: "wide" dtype: DATA_TYPE_FLOAT64 }
    }
  }
  gather_slots: 3
  gradient_slots: 2
)pb";

}  // namespace

v1::Mesh MeshSpec(const MeshShape& mesh) {
  v1::Mesh spec;
  spec.set_strategy(mesh.num_replicate == 1 ? v1::SHARDING_STRATEGY_FULL_SHARD
                    : mesh.num_shard == 1   ? v1::SHARDING_STRATEGY_NO_SHARD
                                            : v1::SHARDING_STRATEGY_HYBRID_SHARD);
  spec.set_num_replicate(static_cast<uint32_t>(mesh.num_replicate));
  spec.set_num_shard(static_cast<uint32_t>(mesh.num_shard));
  return spec;
}

v1::ModelSpec SmallModel(const MeshShape& mesh) {
  v1::ModelSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSmallModel, &spec));
  *spec.mutable_mesh() = MeshSpec(mesh);
  return spec;
}

ModelWorld::ModelWorld(const v1::ModelSpec& spec, absl::Duration collective_timeout, int64_t staging_bytes)
    : pool_(*WorkerPool::Create(2)), device_(*CpuDevice::Create(pool_.get())), staging_(staging_bytes) {
  const auto world = static_cast<int32_t>(spec.mesh().num_replicate() * spec.mesh().num_shard());
  absl::StatusOr<ModelLayout> layout = ModelLayout::Create(spec, world);
  EXPECT_THAT(layout, IsOk());
  absl::StatusOr<std::unique_ptr<LocalCollectives>> collectives = LocalCollectives::Create(layout->mesh(), pool_.get());
  EXPECT_THAT(collectives, IsOk());
  collectives_ = collectives->get();
  const std::vector<Device*> devices(static_cast<size_t>(world), device_.get());
  absl::StatusOr<std::unique_ptr<Model>> model =
      Model::Create(*std::move(layout), devices, *std::move(collectives), observer_,
                    {.collective_timeout = collective_timeout, .staging = &staging_});
  EXPECT_THAT(model, IsOk());
  model_ = *std::move(model);
  workers_.resize(static_cast<size_t>(world));
}

std::unique_ptr<ModelWorld> ModelWorld::Initialized(const v1::ModelSpec& spec, absl::Duration collective_timeout) {
  auto world = std::make_unique<ModelWorld>(spec, collective_timeout);
  world->AttachAll();
  world->Update(ModelValues(world->layout(), 1), UpdateKind::kInitialize);
  return world;
}

void ModelWorld::Attach(int32_t rank) {
  absl::StatusOr<std::unique_ptr<TestWorker>> worker =
      TestWorker::Attach(model(), Rank(rank), /*pid=*/1000 + ++num_processes_);
  ASSERT_THAT(worker, IsOk());
  std::unique_ptr<TestWorker>& place = workers_[static_cast<size_t>(rank)];
  if (place != nullptr) former_workers_.push_back(std::move(place));
  place = *std::move(worker);
}

void ModelWorld::AttachAll() {
  for (int32_t rank = 0; rank < num_ranks(); ++rank) Attach(rank);
}

void ModelWorld::RejoinAll() {
  for (const std::unique_ptr<TestWorker>& worker : workers_) ASSERT_THAT(worker->Rejoin(), IsOk());
}

void ModelWorld::BeginAll(UpdateKind kind) {
  std::vector<Pending<Nothing>> begun;
  for (const std::unique_ptr<TestWorker>& worker : workers_) begun.push_back(worker->BeginUpdate(kind));
  for (const Pending<Nothing>& pending : begun) ASSERT_THAT(pending.Wait(), IsOk());
}

void ModelWorld::CommitAll(bool ema_step) {
  std::vector<Pending<Step>> committed;
  for (const std::unique_ptr<TestWorker>& worker : workers_) committed.push_back(worker->CommitUpdate(ema_step));
  for (size_t i = 0; i < workers_.size(); ++i) {
    ASSERT_THAT(committed[i].Wait(), IsOk());
    workers_[i]->step = *committed[i].Wait();
  }
}

void ModelWorld::Update(const ModelValues& values, UpdateKind kind, bool ema_step) {
  ASSERT_NO_FATAL_FAILURE(BeginAll(kind));
  for (const std::unique_ptr<TestWorker>& worker : workers_) values.WriteTo(*worker);
  ASSERT_NO_FATAL_FAILURE(CommitAll(ema_step));
}

std::vector<GatherTicket> ModelWorld::GatherAll(const std::string& unit) {
  std::vector<Pending<GatherResult>> gathers;
  for (const std::unique_ptr<TestWorker>& worker : workers_) gathers.push_back(worker->Gather(unit));
  std::vector<GatherTicket> tickets;
  for (const Pending<GatherResult>& pending : gathers) {
    EXPECT_THAT(pending.Wait(), IsOk());
    tickets.push_back(pending.Wait().ok() ? pending.Wait()->unit : GatherTicket{});
  }
  return tickets;
}

LaunchThreadHold::LaunchThreadHold(Model& model) {
  // Nobody asks for the tensor: that the answer comes on the launch thread is all that matters.
  model.Pull({.tensor = model.layout().tensor_names().front()}, [this, done = done_.Callback()](const auto&) mutable {
    held_.Notify();
    released_.WaitForNotification();
    done(Nothing{});
  });
  held_.WaitForNotification();
}

void LaunchThreadHold::Release() {
  if (!released_.HasBeenNotified()) released_.Notify();
  EXPECT_THAT(done_.Wait(), IsOk());
}

}  // namespace holdfast
