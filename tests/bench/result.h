// What a benchmark found, and how it is printed.
#ifndef HOLDFAST_TESTS_BENCH_RESULT_H_
#define HOLDFAST_TESTS_BENCH_RESULT_H_

#include <optional>
#include <string>

namespace holdfast::bench {

enum class Better { kHigher, kLower };

// One comparison, both sides measured in turns in the same run.
struct Result {
  std::string suite;
  // What was measured: sizes, dtypes, ranks, threads.
  std::string name;
  // What it is held against; empty if it stands alone.
  std::string peer;
  double value = 0;
  double peer_value = 0;
  // Of both values.
  std::string unit;
  Better better = Better::kHigher;
  // For Ratio() with a peer, for the value itself without; none if nothing in particular is aimed at.
  std::optional<double> aim;
};

// How many times as good as the peer's: > 1 is better, whichever way the unit counts. None without a peer.
std::optional<double> Ratio(const Result& result);

// None without an aim.
std::optional<bool> Met(const Result& result);

// One JSON object: {"suite", "case", "peer", "value", "peer_value", "unit", "ratio", "aim", "met"}; null where there is
// none. No line break.
std::string ToJson(const Result& result);

// A table row for a person, and the heading it stands under. No line break.
std::string ToRow(const Result& result);
std::string RowHeading();

}  // namespace holdfast::bench

#endif  // HOLDFAST_TESTS_BENCH_RESULT_H_
