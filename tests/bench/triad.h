// STREAM's triad: a[i] = b[i] + s · c[i], the customary measure of what the memory can move.
#ifndef HOLDFAST_TESTS_BENCH_TRIAD_H_
#define HOLDFAST_TESTS_BENCH_TRIAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/device/cpu/worker_pool.h"

namespace holdfast::bench {

class Triad {
 public:
  explicit Triad(int64_t num_elements);

  void Run(WorkerPool& pool);
  // As STREAM counts: two reads and a write, without the read that the write costs.
  double bytes() const { return 24.0 * static_cast<double>(a_.size()); }

 private:
  std::vector<double> a_;
  std::vector<double> b_;
  std::vector<double> c_;
};

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_TRIAD_H_
