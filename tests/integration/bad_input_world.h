// The daemon that bad requests are sent to, in a known state.
#ifndef HOLDFAST_TESTS_INTEGRATION_BAD_INPUT_WORLD_H_
#define HOLDFAST_TESTS_INTEGRATION_BAD_INPUT_WORLD_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "holdfast/v1/checkpoint_service.grpc.pb.h"
#include "tests/integration/raw_worker.h"
#include "tests/integration/test_cluster.h"

namespace holdfast {

// Two ranks, two models:
//   "full"   initialised; units a and b (one weight each), c (one weight, frozen), d (one weight); EMA "slow"; two
//   gather
//            and two gradient slots; both ranks attached
//   "blank"  the same, never initialised; rank 0 attached
class BadInputWorld {
 public:
  static absl::StatusOr<std::unique_ptr<BadInputWorld>> Start();

  TestCluster& cluster() { return *cluster_; }
  ParameterStub& stub() { return cluster_->parameters(); }
  v1::AdminService::Stub& admin() { return cluster_->admin(); }
  v1::CheckpointService::Stub& checkpoints() { return *checkpoints_; }
  RawWorker& worker(int rank) { return *full_[rank]; }
  RawWorker& blank_worker() { return *blank_; }

  // Everything that operators can see, as text.
  std::string State();
  // Both ranks of "full" at the start of a new epoch, with nothing waiting.
  absl::Status Reset();

  static v1::ModelSpec Spec(const std::string& name);

 private:
  BadInputWorld() = default;

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<v1::CheckpointService::Stub> checkpoints_;
  // By rank.
  std::vector<std::unique_ptr<RawWorker>> full_;
  std::unique_ptr<RawWorker> blank_;
};

// One bad request. What `prepare` does comes before the state is looked at for the first time; calls it leaves waiting
// are answered by Reset.
struct BadCall {
  std::string name;
  std::function<grpc::Status(BadInputWorld&)> call;
  absl::StatusCode code;
  // Part of the message.
  std::string text;
  std::function<std::vector<std::future<grpc::Status>>(BadInputWorld&)> prepare = nullptr;

  friend void PrintTo(const BadCall& bad, std::ostream* out) { *out << bad.name; }
};

// The tables.
std::vector<BadCall> BadHeaders();
std::vector<BadCall> BadWorkerCalls();
std::vector<BadCall> BadSpecs();
std::vector<BadCall> BadOtherCalls();

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_BAD_INPUT_WORLD_H_
