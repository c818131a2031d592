// The daemon: every part, wired together.
#ifndef HOLDFAST_SERVER_DAEMON_H_
#define HOLDFAST_SERVER_DAEMON_H_

#include <spdlog/logger.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/config/config.h"
#include "server/core/registry.h"
#include "server/device/device.h"

namespace holdfast {

// Thread-safe.
class Daemon {
 public:
  // Serves when it returns.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const Config& config, std::shared_ptr<spdlog::logger> logger);
  ~Daemon();

  // Starts to drain and returns at once. Of several calls the earliest end of the grace period counts.
  void RequestDrain(absl::Duration grace_period) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns when a drain has been requested and is over: health has turned first, then the leases have ended or the
  // grace period has passed, then every call.
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Parts;

  Daemon() = default;

  std::unique_ptr<Parts> parts_;
  absl::Mutex mu_;
  std::optional<absl::Time> drain_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DAEMON_H_
