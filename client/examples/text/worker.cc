#include "client/examples/text/worker.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/examples/text/trainer.h"

namespace text {
namespace {

// Someone else failed, or did not come in time: the same step can be made from the committed one.
bool CanRetry(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status);
}

// Brings a model that has no values yet, or torn ones, to its first values; a whole one it leaves alone.
absl::Status EnsureInitialized(const TrainingConfig& config, holdfast::Worker& worker) {
  const holdfast::v1::ModelState& state = worker.state();
  if (state.initialized() && !state.torn()) return absl::OkStatus();
  return worker.Initialize(InitialWeights(config.model, config.seed));
}

}  // namespace

absl::Status RunWorker(const TrainingConfig& config, const Sharding& sharding, const TextData& data,
                       const std::string& address, holdfast::Rank rank, absl::FunctionRef<void(const Report&)> report) {
  auto client = holdfast::Client::Connect({.address = address});
  if (!client.ok()) return client.status();
  auto registered = (*client)->RegisterModel(MakeModelSpec(config, sharding));
  if (!registered.ok()) return registered.status();
  auto attached = (*client)->Attach(sharding.model_name, rank);
  if (!attached.ok()) return attached.status();
  holdfast::Worker& worker = **attached;
  report(AttachReport{.rank = rank.value(), .step = worker.step().value(), .epoch = worker.state().epoch()});

  Trainer trainer(config, data, worker);
  const int64_t tokens_per_step = config.batch_size * config.model.context;
  absl::Time start = absl::Now();
  absl::Duration daemon_time_before;
  while (worker.step().value() < config.num_steps) {
    const holdfast::Step before = worker.step();
    absl::Status status = EnsureInitialized(config, worker);
    if (status.ok()) status = trainer.Step();
    if (!status.ok()) {
      if (!CanRetry(status)) return status;
      const auto state = worker.Rejoin();
      if (!state.ok()) return state.status();
      report(RetryReport{.rank = rank.value(),
                         .step = state->step(),
                         .epoch = state->epoch(),
                         .reason = std::string(status.message())});
    }
    // A failed commit may have been one all the same: the model's step says it.
    if (worker.step() == before) continue;
    report(StepReport{.rank = rank.value(),
                      .step = worker.step().value(),
                      .loss = trainer.loss(),
                      .num_tokens = tokens_per_step,
                      .seconds = absl::ToDoubleSeconds(absl::Now() - start),
                      .daemon_seconds = absl::ToDoubleSeconds(trainer.daemon_time() - daemon_time_before)});
    start = absl::Now();
    daemon_time_before = trainer.daemon_time();
  }
  return absl::OkStatus();
}

}  // namespace text
