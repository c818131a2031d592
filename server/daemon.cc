#include "server/daemon.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/collectives/local_collectives.h"
#include "server/device/cpu/cpu_device.h"
#include "server/device/cpu/worker_pool.h"
#include "server/handover/memory_server.h"
#include "server/handover/unix_socket.h"
#include "server/metrics/metrics.h"
#include "server/metrics/metrics_observer.h"
#include "server/metrics/metrics_server.h"
#include "server/ready_file.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/checkpoint_service.h"
#include "server/rpc/metrics_interceptor.h"
#include "server/rpc/parameter_service.h"
#include "server/rpc/rpc_server.h"
#include "server/version.h"

namespace holdfast {
namespace {

// gRPC makes the socket file itself; until its access is set nobody else may open it.
class OwnerOnlyFiles {
 public:
  OwnerOnlyFiles() : before_(::umask(0077)) {}
  ~OwnerOnlyFiles() { ::umask(before_); }

 private:
  const mode_t before_;
};

}  // namespace

// In the order in which they are made; each may use those before it.
struct Daemon::Parts {
  std::shared_ptr<spdlog::logger> logger;
  std::string worker_socket;
  std::unique_ptr<WorkerPool> pool;
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<MetricsObserver> observer;
  std::unique_ptr<Registry> registry;
  std::unique_ptr<MemoryServer> memory_server;
  std::unique_ptr<ParameterService> parameter_service;
  std::unique_ptr<CheckpointService> checkpoint_service;
  std::unique_ptr<AdminService> admin_service;
  std::unique_ptr<MetricsServer> metrics_server;
  std::unique_ptr<RpcServer> rpc_server;
};

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const Config& config, std::shared_ptr<spdlog::logger> logger) {
  auto daemon = std::unique_ptr<Daemon>(new Daemon());
  daemon->parts_ = std::make_unique<Parts>();
  Parts& parts = *daemon->parts_;
  parts.logger = std::move(logger);

  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(config.compute_threads);
  if (!pool.ok()) return pool.status();
  parts.pool = *std::move(pool);
  absl::StatusOr<std::unique_ptr<CpuDevice>> device = CpuDevice::Create(parts.pool.get());
  if (!device.ok()) return device.status();
  parts.device = *std::move(device);

  parts.metrics = std::make_unique<Metrics>();
  parts.metrics->SetBuildInfo(kVersion, "cpu");
  parts.observer = std::make_unique<MetricsObserver>(*parts.metrics, parts.logger);
  parts.registry = std::make_unique<Registry>(
      std::vector<Device*>(static_cast<size_t>(config.num_ranks), parts.device.get()),
      [pool = parts.pool.get()](const MeshShape& mesh) -> absl::StatusOr<std::unique_ptr<Collectives>> {
        return LocalCollectives::Create(mesh, pool);
      },
      *parts.observer,
      RegistryOptions{.memory_limit_bytes = config.memory_limit_bytes,
                      .collective_timeout = config.collective_timeout,
                      .pull_staging_bytes = config.pull_staging_bytes});

  absl::StatusOr<std::unique_ptr<MemoryServer>> memory_server =
      MemoryServer::Create({.path = config.memory_socket, .group = config.socket_group}, *parts.registry, parts.logger);
  if (!memory_server.ok()) return memory_server.status();
  parts.memory_server = *std::move(memory_server);

  if (config.metrics_address.has_value()) {
    absl::StatusOr<std::unique_ptr<MetricsServer>> server =
        MetricsServer::Start(config.metrics_address->ToString(), *parts.metrics);
    if (!server.ok()) return server.status();
    parts.metrics_server = *std::move(server);
  }

  parts.parameter_service = std::make_unique<ParameterService>(*parts.registry, config.memory_socket);
  parts.checkpoint_service = std::make_unique<CheckpointService>();
  parts.admin_service = std::make_unique<AdminService>(
      *parts.registry,
      AdminService::Options{.version = kVersion,
                            .backend = "cpu",
                            .started = absl::Now(),
                            .drain_grace_period = config.drain_grace_period,
                            .drain = [d = daemon.get()](absl::Duration grace) { d->RequestDrain(grace); }});

  RpcServer::Options rpc = {
      .worker_socket = config.worker_socket,
      .operator_address = config.operator_address.has_value() ? config.operator_address->ToString() : "",
      .services = {parts.parameter_service.get(), parts.checkpoint_service.get(), parts.admin_service.get()}};
  rpc.interceptors.push_back(std::make_unique<MetricsInterceptorFactory>(*parts.metrics, parts.logger));
  if (absl::Status status = PrepareSocketPath(config.worker_socket); !status.ok()) return status;
  {
    const OwnerOnlyFiles owner_only;
    absl::StatusOr<std::unique_ptr<RpcServer>> rpc_server = RpcServer::Start(std::move(rpc));
    if (!rpc_server.ok()) return rpc_server.status();
    parts.rpc_server = *std::move(rpc_server);
  }
  parts.worker_socket = config.worker_socket;
  if (absl::Status status = SetSocketAccess(config.worker_socket, config.socket_group); !status.ok()) return status;
  parts.rpc_server->SetServing(true);

  const std::string metrics_address = parts.metrics_server == nullptr ? "" : parts.metrics_server->address();
  parts.logger->info("serving {} ranks on {}, memory on {}{}{}", config.num_ranks, config.worker_socket,
                     config.memory_socket,
                     parts.rpc_server->operator_address().empty()
                         ? ""
                         : absl::StrCat(", operators on ", parts.rpc_server->operator_address()),
                     metrics_address.empty() ? "" : absl::StrCat(", metrics on http://", metrics_address, "/metrics"));
  if (!config.ready_file.empty()) {
    const absl::Status written =
        WriteReadyFile(config.ready_file, {.worker_socket = config.worker_socket,
                                           .memory_socket = config.memory_socket,
                                           .operator_address = parts.rpc_server->operator_address(),
                                           .metrics_address = metrics_address});
    if (!written.ok()) return written;
  }
  return daemon;
}

Daemon::~Daemon() = default;

void Daemon::RequestDrain(absl::Duration grace_period) {
  absl::MutexLock lock(&mu_);
  const absl::Time until = absl::Now() + grace_period;
  drain_until_ = drain_until_.has_value() ? std::min(*drain_until_, until) : until;
}

void Daemon::Run() {
  {
    const auto requested = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return drain_until_.has_value(); };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&requested));
  }
  parts_->rpc_server->SetServing(false);
  parts_->metrics->SetDraining(true);
  parts_->logger->info("draining");
  parts_->registry->StartDrain();
  // The grace period may be cut short while it runs.
  absl::Time until;
  bool idle = false;
  do {
    {
      absl::MutexLock lock(&mu_);
      until = *drain_until_;
    }
    idle = parts_->registry->AwaitNoLeases(std::min(until, absl::Now() + absl::Milliseconds(100)));
  } while (!idle && absl::Now() < until);
  parts_->logger->info(idle ? "drained" : "the grace period is over; ending the leases that are left");
  parts_->rpc_server->Shutdown(
      std::max(absl::Now() + absl::Milliseconds(100), std::min(until, absl::Now() + absl::Seconds(1))));
}

}  // namespace holdfast
