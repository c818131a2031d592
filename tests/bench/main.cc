// holdfast_bench: measures holdfast against what it replaces, both in one run.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "tests/bench/result.h"
#include "tests/bench/suites.h"

ABSL_FLAG(std::string, suite, "all", "What to run: ema, gather, reduce_scatter, rpc or all");
ABSL_FLAG(bool, json, false, "Print one JSON object a line instead of a table");
ABSL_FLAG(bool, quick, false, "Smoke run: small sizes, few repetitions, no aims");

namespace holdfast::bench {
namespace {

struct Entry {
  const char* suite;
  Suite run;
};

// A suite may have several entries.
constexpr Entry kEntries[] = {
    {"ema", &RunEma},
    {"gather", &RunGather},
    {"gather", &RunDaemonGather},
    {"reduce_scatter", &RunReduceScatter},
    {"reduce_scatter", &RunDaemonReduceScatter},
    {"rpc", &RunRpc},
};

void PrintRow(const Result& result) {
  std::printf("%s\n", ToRow(result).c_str());
  std::fflush(stdout);
}

void PrintJson(const Result& result) {
  std::printf("%s\n", ToJson(result).c_str());
  std::fflush(stdout);
}

int Run(const std::string& suite, const Options& options, bool json) {
  bool known = false;
  int exit_code = 0;
  for (const Entry& entry : kEntries) {
    if (suite != "all" && suite != entry.suite) continue;
    if (!known && !json) std::printf("%s\n", RowHeading().c_str());
    known = true;
    const absl::Status status = entry.run(options, json ? PrintJson : PrintRow);
    if (status.ok()) continue;
    std::fprintf(stderr, "holdfast_bench: suite %s: %s\n", entry.suite, status.ToString().c_str());
    exit_code = 1;
  }
  if (known) return exit_code;
  std::string names = "all";
  for (const Entry& entry : kEntries) absl::StrAppend(&names, ", ", entry.suite);
  std::fprintf(stderr, "holdfast_bench: there is no suite '%s'; choose one of %s\n", suite.c_str(), names.c_str());
  return 2;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Measures holdfast against what it replaces, both in turns in the same run.");
  absl::ParseCommandLine(argc, argv);
  const holdfast::bench::Options options{.quick = absl::GetFlag(FLAGS_quick)};
  return holdfast::bench::Run(absl::GetFlag(FLAGS_suite), options, absl::GetFlag(FLAGS_json));
}
