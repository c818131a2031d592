// What a benchmark of the backend itself runs on: threads, and arenas of a CPU device.
#ifndef HOLDFAST_TESTS_BENCH_LOCAL_NODE_H_
#define HOLDFAST_TESTS_BENCH_LOCAL_NODE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/cpu/cpu_device.h"
#include "server/device/cpu/worker_pool.h"

namespace holdfast::bench {

class LocalNode {
 public:
  static absl::StatusOr<std::unique_ptr<LocalNode>> Create(int num_threads);

  WorkerPool& pool() { return *pool_; }
  CpuDevice& device() { return *device_; }
  Stream& stream() { return *stream_; }

  // The data of an arena of its own, of at least `size_bytes`, every byte touched; lives as long as the node.
  absl::StatusOr<std::byte*> Allocate(int64_t size_bytes);
  // `num_elements` floats, none of them 0.
  absl::StatusOr<float*> AllocateFloats(int64_t num_elements);

 private:
  LocalNode() = default;

  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Arena>> arenas_;
};

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_LOCAL_NODE_H_
