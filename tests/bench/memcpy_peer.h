// Plain memcpy by the threads of a pool: the measure for moving bytes.
#ifndef HOLDFAST_TESTS_BENCH_MEMCPY_PEER_H_
#define HOLDFAST_TESTS_BENCH_MEMCPY_PEER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "server/device/cpu/worker_pool.h"

namespace holdfast::bench {

// Copies `size_bytes` from `from` to each of `to`.
inline void CopyToEach(WorkerPool& pool, const std::byte* from, absl::Span<std::byte* const> to, int64_t size_bytes) {
  constexpr int64_t kChunkBytes = int64_t{1} << 20;
  const int64_t chunks = (size_bytes + kChunkBytes - 1) / kChunkBytes;
  pool.ParallelFor(chunks * static_cast<int64_t>(to.size()), [&](int64_t chunk) {
    std::byte* const target = to[static_cast<size_t>(chunk / chunks)];
    const int64_t first = chunk % chunks * kChunkBytes;
    std::memcpy(target + first, from + first, static_cast<size_t>(std::min(kChunkBytes, size_bytes - first)));
  });
}

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_MEMCPY_PEER_H_
