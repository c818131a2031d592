#include "client/examples/text/launcher.h"

#include <poll.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/examples/text/daemon_admin.h"
#include "client/examples/text/report.h"
#include "client/examples/text/worker_process.h"

namespace text {
namespace {

// A daemon learns of a death from the closed socket, at once; the limit is for a daemon that hangs.
constexpr absl::Duration kLeaseEndLimit = absl::Seconds(30);

class Job {
 public:
  Job(const LaunchOptions& options, ProgressLine& progress)
      : options_(options), progress_(progress), admin_(options.daemon_socket), log_(options.num_ranks) {}

  absl::StatusOr<LaunchResult> Run() {
    if (absl::Status status = CheckDaemon(); !status.ok()) return status;
    for (int32_t rank = 0; rank < options_.num_ranks; ++rank) {
      workers_.emplace_back();
      if (absl::Status status = StartWorker(rank); !status.ok()) return status;
    }
    while (AnyRuns()) {
      if (absl::Status status = ReadReports(); !status.ok()) return status;
    }
    if (absl::Status status = CheckEnd(); !status.ok()) return status;
    return LaunchResult{.log = std::move(log_), .kill = kill_};
  }

 private:
  absl::Status CheckDaemon() const {
    const auto daemon = admin_.GetStatus();
    if (!daemon.ok()) return daemon.status();
    if (daemon->num_ranks() != static_cast<uint32_t>(options_.num_ranks)) {
      return absl::FailedPreconditionError(absl::StrFormat("the daemon has %d ranks; start %d workers (--ranks=%d)",
                                                           daemon->num_ranks(), daemon->num_ranks(),
                                                           daemon->num_ranks()));
    }
    const auto model = admin_.GetModel(options_.model_name);
    if (absl::IsNotFound(model.status())) return absl::OkStatus();
    if (!model.ok()) return model.status();
    return absl::FailedPreconditionError(
        absl::StrFormat("the daemon already has a model '%s', at step %d: drop it, or choose another name (--model)",
                        options_.model_name, model->state().step()));
  }

  absl::Status StartWorker(int32_t rank) {
    std::vector<std::string> arguments = options_.worker_arguments;
    arguments.push_back(absl::StrCat("--rank=", rank));
    auto worker = WorkerProcess::Start(options_.executable, arguments);
    if (!worker.ok()) return worker.status();
    workers_[static_cast<size_t>(rank)] = *std::move(worker);
    return absl::OkStatus();
  }

  bool AnyRuns() const {
    for (const auto& worker : workers_) {
      if (worker->output() >= 0) return true;
    }
    return false;
  }

  // Waits for output of any worker, and acts on it.
  absl::Status ReadReports() {
    std::vector<pollfd> polled;
    for (const auto& worker : workers_) polled.push_back({.fd = worker->output(), .events = POLLIN, .revents = 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) {
      return absl::ErrnoToStatus(errno, "cannot wait for the workers");
    }
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (absl::Status status = ReadWorker(*workers_[i]); !status.ok()) return status;
      if (workers_[i]->output() < 0) {
        absl::Status end = workers_[i]->Wait();
        if (!end.ok()) return absl::InternalError(absl::StrCat("rank ", i, ": ", end.message()));
      }
      if (kill_is_due_) {
        kill_is_due_ = false;
        if (absl::Status status = KillAndRestart(); !status.ok()) return status;
        // What was polled of the old worker is void.
        return absl::OkStatus();
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadWorker(WorkerProcess& worker) {
    for (const std::string& line : worker.ReadLines()) {
      const absl::StatusOr<Report> report = ParseReport(line);
      if (!report.ok()) return report.status();
      absl::Status status = std::visit([this](const auto& r) { return Handle(r); }, *report);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Handle(const AttachReport& report) {
    if (!kill_.has_value() || report.rank != kill_->rank.value()) return absl::OkStatus();
    if (report.step != kill_->committed_step || report.epoch <= kill_->old_epoch) {
      return absl::InternalError(absl::StrFormat(
          "the kill was not survived: rank %d was at step %d, epoch %d, and its new worker found step %d, epoch %d",
          report.rank, kill_->committed_step, kill_->old_epoch, report.step, report.epoch));
    }
    progress_.Note(absl::StrFormat("rank %d has a new worker, which goes on from step %d (epoch %d)", report.rank,
                                   report.step, report.epoch));
    successor_attached_ = true;
    return absl::OkStatus();
  }

  absl::Status Handle(const StepReport& report) {
    if (log_.Add(report)) progress_.Show(log_.Summary(report.step));
    const bool is_victim = report.rank == options_.num_ranks - 1;
    if (is_victim && report.step == options_.kill_at_step && !kill_.has_value()) kill_is_due_ = true;
    return absl::OkStatus();
  }

  absl::Status Handle(const RetryReport& report) {
    // One rank speaks for all that lost the same epoch.
    if (report.epoch == last_retry_epoch_) return absl::OkStatus();
    last_retry_epoch_ = report.epoch;
    progress_.Note(absl::StrFormat("rank %d starts again from step %d: %s", report.rank, report.step, report.reason));
    return absl::OkStatus();
  }

  absl::Status KillAndRestart() {
    const holdfast::Rank rank(options_.num_ranks - 1);
    WorkerProcess& victim = *workers_.back();
    const auto before = admin_.GetModel(options_.model_name);
    if (!before.ok()) return before.status();
    victim.Kill();
    while (victim.output() >= 0) {
      if (absl::Status status = ReadWorker(victim); !status.ok()) return status;
    }
    // No step can be committed while a rank has no worker: what the daemon says now is what must be found again.
    const auto after = admin_.AwaitFreeRank(options_.model_name, rank, kLeaseEndLimit);
    if (!after.ok()) return after.status();
    kill_ = {.rank = rank,
             .committed_step = after->state().step(),
             .old_epoch = before->state().epoch(),
             .new_epoch = after->state().epoch()};
    progress_.Note(absl::StrFormat("rank %d was killed with SIGKILL (process %d); the model stands at step %d",
                                   rank.value(), victim.pid(), kill_->committed_step));
    return StartWorker(rank.value());
  }

  absl::Status CheckEnd() const {
    const auto model = admin_.GetModel(options_.model_name);
    if (!model.ok()) return model.status();
    if (options_.kill_at_step > 0 && !successor_attached_) {
      return absl::InternalError(
          absl::StrFormat("no worker was killed: step %d was not seen (--kill_at_step)", options_.kill_at_step));
    }
    for (const auto& ema : model->state().emas()) {
      if (ema.step() == options_.num_steps) continue;
      return absl::InternalError(
          absl::StrFormat("EMA '%s' stands at step %d instead of %d", ema.name(), ema.step(), options_.num_steps));
    }
    if (model->state().step() == options_.num_steps) return absl::OkStatus();
    return absl::InternalError(
        absl::StrFormat("the model stands at step %d instead of %d", model->state().step(), options_.num_steps));
  }

  const LaunchOptions& options_;
  ProgressLine& progress_;
  DaemonAdmin admin_;
  TrainingLog log_;
  // By rank.
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::optional<KillRecord> kill_;
  bool kill_is_due_ = false;
  bool successor_attached_ = false;
  uint64_t last_retry_epoch_ = 0;
};

}  // namespace

absl::StatusOr<LaunchResult> Launch(const LaunchOptions& options, ProgressLine& progress) {
  return Job(options, progress).Run();
}

}  // namespace text
