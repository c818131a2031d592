// The suites of holdfast_bench. To add one, or cases to one, write a file with a function like these, declare it here,
// and name it in main.cc's table.
#ifndef HOLDFAST_TESTS_BENCH_SUITES_H_
#define HOLDFAST_TESTS_BENCH_SUITES_H_

#include <functional>

#include "absl/status/status.h"
#include "tests/bench/result.h"

namespace holdfast::bench {

struct Options {
  // A smoke run: small sizes, few repetitions, no aims.
  bool quick = false;
  int repetitions() const { return quick ? 3 : 15; }
};

// Takes each result as it is found.
using Report = std::function<void(const Result&)>;

// A failure ends the suite; a peer that cannot run is a failure, too.
using Suite = absl::Status (*)(const Options& options, const Report& report);

// The EMA of 64M elements in 40 tensors against torch's foreach functions and a STREAM triad.
absl::Status RunEma(const Options& options, const Report& report);
// The gather of a 64 MiB unit among ranks of one node against ProcessGroupGloo's allgather and memcpy.
absl::Status RunGather(const Options& options, const Report& report);
// The reduce-scatter of a 64 MiB unit against ProcessGroupGloo's allreduce (it has no reduce-scatter) and memcpy.
absl::Status RunReduceScatter(const Options& options, const Report& report);

// The same two through a real daemon and its client, from the call to the data.
absl::Status RunDaemonGather(const Options& options, const Report& report);
absl::Status RunDaemonReduceScatter(const Options& options, const Report& report);
// The latency of calls on the daemon's Unix socket.
absl::Status RunRpc(const Options& options, const Report& report);

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_SUITES_H_
