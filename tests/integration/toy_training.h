// A small training whose every number is exact in float32, so that states can be compared bit for bit.
#ifndef HOLDFAST_TESTS_INTEGRATION_TOY_TRAINING_H_
#define HOLDFAST_TESTS_INTEGRATION_TOY_TRAINING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/worker.h"
#include "holdfast/v1/model.pb.h"

namespace holdfast {

// Two units with odd sizes, a tied weight, a frozen parameter, a buffer, one optimizer state and one EMA copy ("fast",
// decay 1/2).
v1::ModelSpec ToySpec(const std::string& name, v1::ShardingStrategy strategy = v1::SHARDING_STRATEGY_FULL_SHARD);

// Called where a worker is: "before_gather", "after_commit", ... In the order of a step: in_initialize, before_gather,
// after_gather, after_release, before_reduce, after_reduce, before_begin, after_begin, half_written, before_commit,
// after_commit, before_ema, after_ema.
using ToyHook = std::function<void(std::string_view point)>;

// Trains until the model is at step `until`; initialises it first if need be. Every rank must do the same.
absl::Status TrainToy(
    Worker& worker, int32_t world, uint64_t until, const ToyHook& hook = [](std::string_view) {});

// What the model must be after a number of steps, computed on one whole copy with no sharding.
class ToyReference {
 public:
  ToyReference(int32_t world, uint64_t steps);

  // By tensor name: parameters, and the buffer; and the EMA's copies.
  const std::map<std::string, std::vector<float>>& values() const { return values_; }
  const std::map<std::string, std::vector<float>>& ema() const { return ema_; }

 private:
  std::map<std::string, std::vector<float>> values_;
  std::map<std::string, std::vector<float>> ema_;
};

// Pulls the whole model and its EMA copy and compares them bit for bit with the reference of the step that each tensor
// names. The error names the first difference. FAILED_PRECONDITION if some tensor is of another step than `step`.
absl::Status CheckToy(Client& client, const std::string& model, int32_t world, uint64_t step);

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_INTEGRATION_TOY_TRAINING_H_
