// A training run whose every value is known beforehand, for workers that die at random.
#ifndef HOLDFAST_TESTS_SERVER_CORE_RANDOM_TRAINING_H_
#define HOLDFAST_TESTS_SERVER_CORE_RANDOM_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/layout.h"
#include "tests/server/core/test_worker.h"

namespace holdfast {

// Unit and flat parameter.
using FlatIndex = std::pair<size_t, size_t>;

// What is known of one step: unsharded, padded, exact in float32 (small numbers of few binary places).
struct ReferenceState {
  std::map<FlatIndex, std::vector<double>> parameters;
  // The first optimizer state, of trainable flat parameters.
  std::map<FlatIndex, std::vector<double>> states;
  // By EMA; left out where it is not exact (bfloat16).
  std::vector<std::map<FlatIndex, std::vector<double>>> emas;
};

// One call of a step's program; all ranks make the same ones.
struct ProgramCall {
  bool is_gather = true;
  size_t unit = 0;
  std::vector<std::string> prefetch;
  // Of a reduction.
  uint64_t micro_step = 0;
};

// The same model, seed and number of steps give the same run: with parameters p, optimizer state s and the mean
// gradients g of a step, p = p / 2 + Σ g, s = s + Σ g, sums over its micro steps. Immutable; thread-safe.
class RandomTraining {
 public:
  // The layout must outlive it, and must be of SmallModel. Parameters are float32 in the shards and bfloat16 in slots.
  RandomTraining(const ModelLayout& layout, uint64_t seed, uint64_t num_steps);

  uint64_t num_steps() const { return states_.size() - 1; }
  const ReferenceState& at(Step step) const { return states_[step.value()]; }
  const std::vector<ProgramCall>& program(Step step) const { return programs_[step.value()]; }

  // First values, as all ranks write them.
  void WriteInitial(const TestWorker& worker) const;
  // A rank's gradient of a unit, to its gradient slot.
  void WriteGradient(const TestWorker& worker, Step step, uint64_t micro_step, size_t unit, int32_t slot) const;
  // What the optimizer does with shards, state and buffers from the gradient shards; only the first `num_parts` flat
  // parameters if it is to die in the middle.
  void WriteUpdate(const TestWorker& worker, Step step, size_t num_parts) const;
  size_t num_trainable() const { return num_trainable_; }

  // Fails the test where a slot of the worker, or its shards, are not those of the step.
  void ExpectGathered(const TestWorker& worker, Step step, UnitIndex unit, int32_t slot) const;
  void ExpectShards(const TestWorker& worker, Step step) const;
  // What Pull brings of a trainable tensor; `ema` as in the spec, −1 for the model.
  std::vector<std::byte> Tensor(const std::string& name, Step step, int ema) const;

 private:
  double Gradient(Step step, uint64_t micro_step, FlatIndex flat, Rank rank, int64_t element) const;
  double MeanGradient(Step step, FlatIndex flat, int64_t element) const;
  void AddProgram(std::mt19937_64& random);
  void AddState();
  const FlatParameter& flat(FlatIndex index) const {
    return layout_.units()[index.first].flat_parameters[index.second];
  }

  const ModelLayout& layout_;
  const uint64_t seed_;
  size_t num_trainable_ = 0;
  // By step.
  std::vector<std::vector<ProgramCall>> programs_;
  std::vector<uint64_t> num_micro_steps_;
  std::vector<ReferenceState> states_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_CORE_RANDOM_TRAINING_H_
