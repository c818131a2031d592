// A real daemon with a worker on each rank: what a benchmark from end to end runs on.
#ifndef HOLDFAST_TESTS_BENCH_DAEMON_NODE_H_
#define HOLDFAST_TESTS_BENCH_DAEMON_NODE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/worker.h"
#include "common/dtype.h"
#include "tests/integration/test_cluster.h"

namespace holdfast::bench {

class DaemonNode {
 public:
  // A model of two units "0" and "1" of `unit_bytes` in `param` each, float32 masters and gradients, FULL_SHARD over
  // `world` ranks, initialised. With one gather slot, so that gathering the two in turns moves every byte every time.
  static absl::StatusOr<std::unique_ptr<DaemonNode>> Create(int world, int64_t unit_bytes, DType param);

  TestCluster& cluster() { return *cluster_; }
  Client& client() { return *client_; }
  Worker& worker(int rank) { return *workers_[static_cast<size_t>(rank)]; }

  // `work` on a thread for each rank; the first error.
  absl::Status OnEveryRank(const std::function<absl::Status(Worker&)>& work);

 private:
  DaemonNode() = default;

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_DAEMON_NODE_H_
