// LibTorch's ProcessGroupGloo among ranks of this process, over loopback TCP as between processes.
#ifndef HOLDFAST_TESTS_BENCH_GLOO_PEER_H_
#define HOLDFAST_TESTS_BENCH_GLOO_PEER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace holdfast::bench {

class GlooPeer {
 public:
  // `world` ranks with one process group each. UNAVAILABLE if they cannot connect.
  static absl::StatusOr<std::unique_ptr<GlooPeer>> Create(int world);
  virtual ~GlooPeer() = default;

  // Each rank's inputs and outputs for the calls below: a unit of `unit_bytes` of 4-byte or, where `half`, of 2-byte
  // numbers (float16: this Gloo knows no bfloat16).
  virtual absl::Status Prepare(int64_t unit_bytes, bool half) = 0;
  // Every rank gathers the unit from one shard of each rank. Crashes on failure: there is nothing to measure then.
  virtual void AllGather() = 0;
  // Every rank gets the sum of all ranks' units.
  virtual void AllReduce() = 0;
};

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_GLOO_PEER_H_
