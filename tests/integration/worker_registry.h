// Functions that a test runs in processes of their own.
//
// A process that uses gRPC must not fork, so a worker process is this very test program, started again with the name of
// a function: tests/integration/main.cc sees it and runs the function in place of the tests.
#ifndef HOLDFAST_TESTS_INTEGRATION_WORKER_REGISTRY_H_
#define HOLDFAST_TESTS_INTEGRATION_WORKER_REGISTRY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/integration/child_process.h"

namespace holdfast {

// What it returns is the process's exit code.
using WorkerFunction = int (*)(const std::vector<std::string>& arguments);

// At namespace scope: const WorkerRegistration kTrain("train", &Train);
class WorkerRegistration {
 public:
  WorkerRegistration(std::string_view name, WorkerFunction function);
};

// Runs the function `name` with `arguments` in a new process. Its standard error is this process's.
absl::StatusOr<std::unique_ptr<ChildProcess>> StartWorkerProcess(const std::string& name,
                                                                 const std::vector<std::string>& arguments);

// For main(): the exit code, if the command line asks for a worker function.
std::optional<int> RunAsWorkerProcess(int argc, char** argv);

// For worker functions: a line to the test, and the next line from it (false if the test has gone).
void Tell(const std::string& line);
bool Hear(std::string& line);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_WORKER_REGISTRY_H_
