// The same for libFuzzer: fuzz_server [CORPUS DIRECTORY]. One daemon serves all inputs.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/fuzz/choices.h"
#include "tests/fuzz/fuzz_daemon.h"
#include "tests/fuzz/fuzz_driver.h"

namespace {

holdfast::FuzzDaemon& Daemon() {
  static auto* const daemon = [] {
    google::protobuf::SetLogHandler(nullptr);
    absl::StatusOr<std::unique_ptr<holdfast::FuzzDaemon>> started = holdfast::FuzzDaemon::Start();
    if (!started.ok()) {
      std::fprintf(stderr, "%s\n", started.status().ToString().c_str());
      std::abort();
    }
    return started->release();
  }();
  return *daemon;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  holdfast::Choices choices(absl::MakeConstSpan(data, size));
  holdfast::FuzzDriver driver(Daemon(), choices);
  while (!choices.exhausted() && driver.faults().empty()) driver.Run();
  if (driver.faults().empty()) driver.RunStep(/*disturb=*/false);
  for (const std::string& fault : driver.faults()) std::fprintf(stderr, "%s\n", fault.c_str());
  if (!driver.faults().empty()) std::abort();
  return 0;
}
