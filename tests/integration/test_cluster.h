// A real holdfastd, and everything to talk to it.
#ifndef HOLDFAST_TESTS_INTEGRATION_TEST_CLUSTER_H_
#define HOLDFAST_TESTS_INTEGRATION_TEST_CLUSTER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "holdfast/v1/admin_service.grpc.pb.h"
#include "holdfast/v1/parameter_service.grpc.pb.h"
#include "tests/integration/child_process.h"
#include "tests/integration/temporary_directory.h"

namespace holdfast {

struct TestClusterOptions {
  int32_t num_ranks = 2;
  // Also on free TCP ports of the loopback.
  bool operator_address = false;
  bool metrics_address = false;
  // Further flags of the daemon: "--collective_timeout=2s".
  std::vector<std::string> flags;
};

// One daemon in a directory of its own, killed with this object. If the test has failed by then, its log is shown.
// Used by one thread; what it returns may be used by any.
class TestCluster {
 public:
  // Returns when the daemon serves. An error has the daemon's log in it.
  static absl::StatusOr<std::unique_ptr<TestCluster>> Start(const TestClusterOptions& options = {});
  ~TestCluster();

  // Where it listens, as its ready file says: "worker_socket", "memory_socket", "operator_address", "metrics_address".
  std::string Address(const std::string& name) const;
  std::string worker_socket() const { return directory_->File("w"); }
  std::string memory_socket() const { return Address("memory_socket"); }
  const TemporaryDirectory& directory() const { return *directory_; }
  ChildProcess& daemon() { return *daemon_; }
  std::string Log() const;

  // A channel of its own to the worker socket.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  v1::ParameterService::Stub& parameters() { return *parameters_; }
  v1::AdminService::Stub& admin() { return *admin_; }

  v1::GetStatusResponse GetStatus();
  // The model at a glance; without a name if there is none of that name.
  v1::ModelStatus GetModel(const std::string& name);
  // Asks again until `holds` does; false if it does not within a minute.
  bool AwaitModel(const std::string& name, const std::function<bool(const v1::ModelStatus&)>& holds);
  absl::Status RegisterModel(const v1::ModelSpec& spec);

 private:
  TestCluster(std::unique_ptr<TemporaryDirectory> directory, std::unique_ptr<ChildProcess> daemon);

  const std::unique_ptr<TemporaryDirectory> directory_;
  const std::unique_ptr<ChildProcess> daemon_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ParameterService::Stub> parameters_;
  const std::unique_ptr<v1::AdminService::Stub> admin_;
};

// The daemon's program, and the flags of one that serves in `directory` with this many ranks.
std::string DaemonExecutable();
std::vector<std::string> DaemonFlags(const TemporaryDirectory& directory, int32_t num_ranks);

// The whole content; empty if there is no such file.
std::string ReadFile(const std::string& path);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_TEST_CLUSTER_H_
