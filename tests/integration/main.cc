// Runs the tests, or one worker function of theirs (worker_registry.h).
#include <gtest/gtest.h>

#include "tests/integration/worker_registry.h"

int main(int argc, char** argv) {
  if (const std::optional<int> exit_code = holdfast::RunAsWorkerProcess(argc, argv)) return *exit_code;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
