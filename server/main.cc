// holdfastd: reads its configuration, serves, and drains on SIGTERM or SIGINT.
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/config/command_line.h"
#include "server/config/config.h"
#include "server/config/config_help.h"
#include "server/daemon.h"
#include "server/logging/logger.h"
#include "server/version.h"

namespace holdfast {
namespace {

constexpr int kWrongConfiguration = 2;

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "holdfastd: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

// Every thread inherits the mask, so that one alone takes the signals.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Serve(const CommandLine& line) {
  const absl::StatusOr<Config> config = ResolveConfig(line.config, line.origins);
  if (!config.ok()) return Fail(config.status(), kWrongConfiguration);
  if (line.check_config) {
    std::fputs(config->ToText().c_str(), stdout);
    return 0;
  }
  const sigset_t signals = BlockSignals();
  const std::shared_ptr<spdlog::logger> logger = CreateLogger(config->log_format, config->log_level);
  if (line.config.backend() != v1::BACKEND_CPU) {
    logger->info("backend auto: this version has no CUDA backend; the state is in shared memory (cpu)");
  }
  const absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(*config, logger);
  if (!daemon.ok()) return Fail(daemon.status(), 1);

  // The first signal starts the grace period, the next one ends it.
  std::atomic<bool> over = false;
  std::thread signal_taker([&] {
    absl::Duration grace = config->drain_grace_period;
    for (int signal = 0; sigwait(&signals, &signal) == 0 && !over; grace = absl::ZeroDuration()) {
      (*daemon)->RequestDrain(grace);
    }
  });
  (*daemon)->Run();
  over = true;
  pthread_kill(signal_taker.native_handle(), SIGTERM);
  signal_taker.join();
  return 0;
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  const absl::StatusOr<holdfast::CommandLine> line =
      holdfast::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) return holdfast::Fail(line.status(), holdfast::kWrongConfiguration);
  if (line->help) {
    std::fputs(holdfast::ConfigHelp().c_str(), stdout);
    return 0;
  }
  if (line->version) {
    std::printf("holdfastd %s\n", holdfast::kVersion);
    return 0;
  }
  return holdfast::Serve(*line);
}
