#include "tests/integration/worker_registry.h"

#include <iostream>
#include <map>

namespace holdfast {
namespace {

constexpr std::string_view kFlag = "--run_worker=";

// Filled before main.
std::map<std::string, WorkerFunction, std::less<>>& Functions() {
  static auto* const functions = new std::map<std::string, WorkerFunction, std::less<>>();
  return *functions;
}

}  // namespace

WorkerRegistration::WorkerRegistration(std::string_view name, WorkerFunction function) {
  Functions().emplace(name, function);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> StartWorkerProcess(const std::string& name,
                                                                 const std::vector<std::string>& arguments) {
  ChildProcess::Options options = {.executable = "/proc/self/exe", .arguments = {std::string(kFlag) + name}};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  return ChildProcess::Start(options);
}

std::optional<int> RunAsWorkerProcess(int argc, char** argv) {
  const std::string_view argument = argc > 1 ? argv[1] : "";
  if (!argument.starts_with(kFlag)) return std::nullopt;
  const std::string_view name = argument.substr(kFlag.size());
  const auto found = Functions().find(name);
  if (found == Functions().end()) {
    std::cerr << "no worker function '" << name << "'" << std::endl;
    return 127;
  }
  return found->second(std::vector<std::string>(argv + 2, argv + argc));
}

void Tell(const std::string& line) { std::cout << line << std::endl; }

bool Hear(std::string& line) { return static_cast<bool>(std::getline(std::cin, line)); }

}  // namespace holdfast
