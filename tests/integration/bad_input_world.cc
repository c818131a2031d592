#include "tests/integration/bad_input_world.h"

#include <google/protobuf/text_format.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/integration/status_matchers.h"

namespace holdfast {
namespace {

absl::Status Initialize(ParameterStub& stub, std::vector<std::unique_ptr<RawWorker>>& workers) {
  std::vector<std::future<grpc::Status>> committed;
  for (const std::unique_ptr<RawWorker>& worker : workers) {
    v1::BeginUpdateRequest begin;
    *begin.mutable_call() = worker->Header(0);
    begin.set_kind(v1::UPDATE_KIND_INITIALIZE);
    if (grpc::Status status = CallOnce(stub, &ParameterStub::BeginUpdate, begin); !status.ok()) return ToStatus(status);
  }
  for (const std::unique_ptr<RawWorker>& worker : workers) {
    v1::CommitUpdateRequest commit;
    *commit.mutable_call() = worker->Header(1);
    committed.push_back(worker->Start(&ParameterStub::CommitUpdate, commit));
  }
  absl::Status status;
  for (std::future<grpc::Status>& future : committed) status.Update(ToStatus(future.get()));
  return status;
}

}  // namespace

v1::ModelSpec BadInputWorld::Spec(const std::string& name) {
  v1::ModelSpec spec;
  spec.set_name(name);
  for (const std::string unit : {"a", "b", "c", "d"}) {
    v1::UnitSpec& added = *spec.add_units();
    added.set_name(unit);
    v1::ParameterSpec& parameter = *added.add_parameters();
    parameter.set_name(unit + ".weight");
    parameter.add_shape(3);
    parameter.add_shape(5);
    parameter.set_dtype(v1::DATA_TYPE_FLOAT32);
    parameter.set_frozen(unit == "c");
  }
  spec.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_FULL_SHARD);
  v1::EmaSpec& ema = *spec.add_emas();
  ema.set_name("slow");
  ema.mutable_constant()->set_decay(0.9999);
  spec.set_gather_slots(2);
  spec.set_gradient_slots(2);
  return spec;
}

absl::StatusOr<std::unique_ptr<BadInputWorld>> BadInputWorld::Start() {
  absl::StatusOr<std::unique_ptr<TestCluster>> cluster =
      TestCluster::Start({.num_ranks = 2, .flags = {"--memory_limit_bytes=67108864"}});
  if (!cluster.ok()) return cluster.status();
  auto world = std::unique_ptr<BadInputWorld>(new BadInputWorld());
  world->cluster_ = *std::move(cluster);
  world->checkpoints_ = v1::CheckpointService::NewStub(world->cluster_->NewChannel());
  for (const std::string model : {"full", "blank"}) {
    if (absl::Status status = world->cluster_->RegisterModel(Spec(model)); !status.ok()) return status;
  }
  for (uint32_t rank = 0; rank < 2; ++rank) {
    world->full_.push_back(std::make_unique<RawWorker>(world->stub(), AttachRequestOf("full", rank)));
    if (!world->full_.back()->status().ok()) return ToStatus(world->full_.back()->status());
  }
  world->blank_ = std::make_unique<RawWorker>(world->stub(), AttachRequestOf("blank", 0));
  if (!world->blank_->status().ok()) return ToStatus(world->blank_->status());
  if (absl::Status status = Initialize(world->stub(), world->full_); !status.ok()) return status;
  if (absl::Status status = world->Reset(); !status.ok()) return status;
  return world;
}

absl::Status BadInputWorld::Reset() {
  // The first one may end the epoch, the second one enters it.
  for (const auto& worker : {full_[0].get(), full_[1].get(), full_[0].get(), blank_.get()}) {
    if (grpc::Status status = worker->Rejoin(); !status.ok()) return ToStatus(status);
  }
  return absl::OkStatus();
}

std::string BadInputWorld::State() {
  std::string status, models;
  google::protobuf::TextFormat::PrintToString(cluster_->GetStatus(), &status);
  grpc::ClientContext context;
  v1::ListModelsResponse listed;
  if (!admin().ListModels(&context, {}, &listed).ok()) return "ListModels failed";
  google::protobuf::TextFormat::PrintToString(listed, &models);
  return absl::StrCat(status, models);
}

}  // namespace holdfast
