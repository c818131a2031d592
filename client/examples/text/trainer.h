// One training step on a rank whose parameters live in holdfast.
#ifndef HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINER_H_
#define HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/examples/text/data.h"
#include "client/examples/text/model.h"
#include "client/examples/text/training_config.h"
#include "client/worker.h"

namespace text {

// Used by one thread. Keeps references to all three: they must outlive it.
class Trainer {
 public:
  Trainer(const TrainingConfig& config, const TextData& data, holdfast::Worker& worker);

  // Makes and commits the step behind worker.step(). After an error the model stands at a committed step, this one or
  // the one before, and the worker must rejoin.
  absl::Status Step();

  // Of this rank's batch, in the latest Step; nats a character.
  float loss() const { return loss_; }
  // How long Step has waited in calls of holdfast, over all steps.
  absl::Duration daemon_time() const { return daemon_time_; }

 private:
  absl::Status ForwardBackward(uint64_t step);
  absl::Status Update(uint64_t step);

  // The weights of a unit, once they are there, while `next` is on its way; num_units() for no next one. They hold
  // until the unit is released.
  absl::StatusOr<Weights> Gather(size_t unit, size_t next);
  absl::Status Release(size_t unit);
  // Starts reducing the gradient of a unit to the shards of all ranks.
  absl::Status StartReduce(size_t unit, const Weights& gradients);

  size_t num_units() const { return units_.size(); }

  // Counts the time of one call.
  template <typename Call>
  auto Timed(Call&& call) {
    const absl::Time start = absl::Now();
    auto result = std::forward<Call>(call)();
    daemon_time_ += absl::Now() - start;
    return result;
  }

  const TrainingConfig& config_;
  const TextData& data_;
  holdfast::Worker& worker_;
  const std::vector<Unit> units_;
  // Reductions under way.
  std::vector<holdfast::Future<void>> reductions_;
  float loss_ = 0;
  absl::Duration daemon_time_;
};

}  // namespace text

#endif  // HOLDFAST_CLIENT_EXAMPLES_TEXT_TRAINER_H_
