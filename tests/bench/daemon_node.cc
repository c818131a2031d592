#include "tests/bench/daemon_node.h"

#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast::bench {
namespace {

v1::ModelSpec MakeSpec(int64_t unit_bytes, DType param) {
  v1::ModelSpec spec;
  spec.set_name("bench");
  spec.mutable_mesh()->set_strategy(v1::SHARDING_STRATEGY_FULL_SHARD);
  spec.mutable_precision()->set_param(ToProto(param));
  spec.mutable_precision()->set_reduce(v1::DATA_TYPE_FLOAT32);
  spec.set_gather_slots(1);
  for (int i = 0; i < 2; ++i) {
    v1::UnitSpec& unit = *spec.add_units();
    unit.set_name(absl::StrCat(i));
    v1::ParameterSpec& parameter = *unit.add_parameters();
    parameter.set_name(absl::StrCat(i, ".weight"));
    parameter.add_shape(unit_bytes / SizeOf(param));
    parameter.set_dtype(v1::DATA_TYPE_FLOAT32);
  }
  return spec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DaemonNode>> DaemonNode::Create(int world, int64_t unit_bytes, DType param) {
  auto node = std::unique_ptr<DaemonNode>(new DaemonNode());
  absl::StatusOr<std::unique_ptr<TestCluster>> cluster = TestCluster::Start({.num_ranks = world});
  if (!cluster.ok()) return cluster.status();
  node->cluster_ = *std::move(cluster);
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect({.address = node->cluster_->worker_socket()});
  if (!client.ok()) return client.status();
  node->client_ = *std::move(client);
  if (absl::Status status = node->client_->RegisterModel(MakeSpec(unit_bytes, param)).status(); !status.ok()) {
    return status;
  }
  for (int rank = 0; rank < world; ++rank) {
    absl::StatusOr<std::unique_ptr<Worker>> worker = node->client_->Attach("bench", Rank(rank));
    if (!worker.ok()) return worker.status();
    node->workers_.push_back(*std::move(worker));
  }
  // The arenas' zeros will do for values.
  const absl::Status initialised = node->OnEveryRank([](Worker& worker) {
    if (absl::Status status = worker.BeginUpdate(v1::UPDATE_KIND_INITIALIZE); !status.ok()) return status;
    return worker.CommitUpdate().status();
  });
  if (!initialised.ok()) return initialised;
  return node;
}

absl::Status DaemonNode::OnEveryRank(const std::function<absl::Status(Worker&)>& work) {
  std::vector<absl::Status> statuses(workers_.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers_.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = work(*workers_[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  absl::Status first;
  for (const absl::Status& status : statuses) first.Update(status);
  return first;
}

}  // namespace holdfast::bench
