#include "tests/bench/local_node.h"

#include <utility>

#include "common/layout.h"

namespace holdfast::bench {

absl::StatusOr<std::unique_ptr<LocalNode>> LocalNode::Create(int num_threads) {
  std::unique_ptr<LocalNode> node(new LocalNode());
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(num_threads);
  if (!pool.ok()) return pool.status();
  node->pool_ = *std::move(pool);
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(node->pool_.get());
  if (!device.ok()) return device.status();
  node->device_ = *std::move(device);
  absl::StatusOr<std::unique_ptr<Stream>> stream = node->device_->CreateStream();
  if (!stream.ok()) return stream.status();
  node->stream_ = *std::move(stream);
  return node;
}

absl::StatusOr<std::byte*> LocalNode::Allocate(int64_t size_bytes) {
  const int64_t pages = (size_bytes + kPageBytes - 1) / kPageBytes + 1;
  absl::StatusOr<std::unique_ptr<Arena>> arena = device_->Allocate("bench", pages * kPageBytes);
  if (!arena.ok()) return arena.status();
  arenas_.push_back(*std::move(arena));
  return arenas_.back()->data();
}

absl::StatusOr<float*> LocalNode::AllocateFloats(int64_t num_elements) {
  absl::StatusOr<std::byte*> data = Allocate(num_elements * static_cast<int64_t>(sizeof(float)));
  if (!data.ok()) return data.status();
  float* const floats = reinterpret_cast<float*>(*data);
  for (int64_t i = 0; i < num_elements; ++i) floats[i] = 1.0f + static_cast<float>(i % 1000) / 1000;
  return floats;
}

}  // namespace holdfast::bench
