#include "tests/bench/measure.h"

#include <algorithm>
#include <chrono>

namespace holdfast::bench {
namespace {

double Seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<double> MedianSeconds(absl::Span<const std::function<void()>> bodies, int repetitions) {
  std::vector<std::vector<double>> seconds(bodies.size());
  for (const std::function<void()>& body : bodies) body();
  for (int round = 0; round < repetitions; ++round) {
    for (size_t i = 0; i < bodies.size(); ++i) seconds[i].push_back(Seconds(bodies[i]));
  }
  std::vector<double> medians;
  for (std::vector<double>& one : seconds) medians.push_back(Median(std::move(one)));
  return medians;
}

}  // namespace holdfast::bench
