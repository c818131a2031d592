// Times several ways to do the same in turns, so that what else the machine does meets all of them alike.
#ifndef HOLDFAST_TESTS_BENCH_MEASURE_H_
#define HOLDFAST_TESTS_BENCH_MEASURE_H_

#include <functional>
#include <vector>

#include "absl/types/span.h"

namespace holdfast::bench {

// The median seconds of each of `bodies` over `repetitions` rounds, in each of which every one runs once; a first round
// is not counted.
std::vector<double> MedianSeconds(absl::Span<const std::function<void()>> bodies, int repetitions);

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_MEASURE_H_
