#include "tests/bench/triad.h"

#include <algorithm>

namespace holdfast::bench {
namespace {

// The triad is to be as fast as this machine can, or being near it would say nothing.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void TriadLoop(double* __restrict a, const double* __restrict b, const double* __restrict c, int64_t num_elements) {
  for (int64_t i = 0; i < num_elements; ++i) a[i] = b[i] + 3.0 * c[i];
}

}  // namespace

Triad::Triad(int64_t num_elements)
    : a_(static_cast<size_t>(num_elements), 1.0),
      b_(static_cast<size_t>(num_elements), 2.0),
      c_(static_cast<size_t>(num_elements), 0.5) {}

void Triad::Run(WorkerPool& pool) {
  // As STREAM with OpenMP: one run of elements a thread.
  const int64_t size = static_cast<int64_t>(a_.size());
  const int64_t share = (size + pool.num_threads() - 1) / pool.num_threads();
  pool.ParallelFor(pool.num_threads(), [&](int64_t thread) {
    const int64_t first = std::min(size, thread * share);
    const int64_t count = std::min(share, size - first);
    TriadLoop(a_.data() + first, b_.data() + first, c_.data() + first, count);
  });
}

}  // namespace holdfast::bench
