// Workers on threads of their own run the same training, and die or give their step up at random: what is committed is
// what one process would have computed, at every step and on every way out.
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"
#include "tests/server/core/random_training.h"

namespace holdfast {
namespace {

constexpr uint64_t kNumSteps = 8;
constexpr int kDeathsOfARank = 4;
constexpr int kTimesOfGivingUp = 2;

// The workers of one rank, one after the other. Used by one thread.
class MortalWorker {
 public:
  // `first` is the rank's first worker; all outlive it.
  MortalWorker(Model& model, const RandomTraining& training, TestWorker& first, uint64_t seed)
      : model_(model), training_(training), worker_(&first), random_(seed) {}

  // Until the last step is committed.
  void Run() {
    while (worker_->step < Step(training_.num_steps())) {
      const std::optional<absl::Status> ended = RunStep();
      if (!ended.has_value()) {
        Die();
      } else if (ended->code() == absl::StatusCode::kAborted) {
        ASSERT_THAT(worker_->Rejoin(), IsOk());
      } else {
        ASSERT_THAT(*ended, IsOk());
      }
      if (worker_ == nullptr) return;
      training_.ExpectShards(*worker_, worker_->step);
    }
    ASSERT_THAT(worker_->EmaStep().Wait(), IsOk());
  }

  TestWorker& worker() { return *worker_; }
  int num_deaths() const { return num_deaths_; }

 private:
  bool GivesUpHere() {
    if (num_given_up_ == kTimesOfGivingUp || random_() % 60 != 0) return false;
    ++num_given_up_;
    return true;
  }
  bool DiesHere() { return num_deaths_ < kDeathsOfARank && random_() % 60 == 0; }

  // Nothing if it died; otherwise how the step ended.
  std::optional<absl::Status> RunStep() {
    const Step step = worker_->step;
    // Every rank does, so that no step is committed before the copies are at the one before it.
    if (absl::Status status = worker_->EmaStep().Wait().status(); !status.ok()) return status;
    std::vector<std::string> release;
    int32_t slot = 0;
    for (const ProgramCall& call : training_.program(step)) {
      if (DiesHere()) return std::nullopt;
      if (GivesUpHere()) return absl::AbortedError("it gave up, for reasons of its own");
      const std::string& unit = model_.layout().units()[call.unit].name;
      if (call.is_gather) {
        const Pending<GatherResult> gather = worker_->Gather(unit, call.prefetch, release);
        if (DiesHere()) return std::nullopt;
        if (!gather.Wait().ok()) return gather.Wait().status();
        training_.ExpectGathered(*worker_, step, gather.Wait()->unit.unit, gather.Wait()->unit.slot);
        release = {unit};
      } else {
        slot = 1 - slot;
        training_.WriteGradient(*worker_, step, call.micro_step, call.unit, slot);
        const Pending<Nothing> reduction =
            worker_->ReduceScatter(unit, static_cast<uint32_t>(slot), /*accumulate=*/call.micro_step > 0);
        if (DiesHere()) return std::nullopt;
        if (!reduction.Wait().ok()) return reduction.Wait().status();
      }
    }
    const Pending<Nothing> begin = worker_->BeginUpdate();
    if (DiesHere()) return std::nullopt;
    if (!begin.Wait().ok()) return begin.Wait().status();
    const bool dies_in_update = num_deaths_ < kDeathsOfARank && random_() % 6 == 0;
    training_.WriteUpdate(*worker_, step,
                          dies_in_update ? random_() % training_.num_trainable() : training_.num_trainable());
    if (dies_in_update) return std::nullopt;
    if (GivesUpHere()) return absl::AbortedError("it gave up after its update");
    const Pending<Step> commit = worker_->CommitUpdate(/*ema_step=*/step.value() % 3 == 0);
    if (DiesHere()) return std::nullopt;
    if (!commit.Wait().ok()) return commit.Wait().status();
    worker_->step = *commit.Wait();
    return absl::OkStatus();
  }

  void Die() {
    ++num_deaths_;
    int32_t pid = worker_->pid() + 100;
    worker_->Disconnect();
    if (random_() % 3 == 0) {
      // It only lost its connection, and comes back while it still maps its memory.
      pid = worker_->pid();
    } else {
      EXPECT_THAT(TestWorker::Attach(model_, worker_->rank(), pid),
                  FailsWith(absl::StatusCode::kAlreadyExists, "still maps its memory"));
    }
    const std::string token = worker_->attachment().memory_token;
    if (pid != worker_->pid()) model_.MemoryReturned(token, "died");
    absl::StatusOr<std::unique_ptr<TestWorker>> next = TestWorker::Attach(model_, worker_->rank(), pid);
    if (pid == worker_->pid()) model_.MemoryReturned(token, "gave its memory back");
    worker_ = nullptr;
    ASSERT_THAT(next, IsOk());
    successors_.push_back(*std::move(next));
    worker_ = successors_.back().get();
  }

  Model& model_;
  const RandomTraining& training_;
  TestWorker* worker_;
  std::vector<std::unique_ptr<TestWorker>> successors_;
  std::mt19937_64 random_;
  int num_deaths_ = 0;
  int num_given_up_ = 0;
};

class ModelRandomTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Pulls one tensor and compares it with the step that it is said to be of.
  void ExpectPulled(const RandomTraining& training, const std::string& name, int ema) {
    Pending<Nothing> pulled;
    world_->model().Pull({.tensor = name, .ema = ema < 0 ? "" : world_->layout().emas()[static_cast<size_t>(ema)].name},
                         [&, done = pulled.Callback()](absl::StatusOr<PulledTensor> tensor) mutable {
                           EXPECT_THAT(tensor, IsOk());
                           if (tensor.ok()) {
                             EXPECT_EQ(tensor->bytes, training.Tensor(name, tensor->step, ema))
                                 << name << " of EMA " << ema << " at step " << tensor->step;
                           }
                           done(Nothing{});
                         });
    EXPECT_THAT(pulled.Wait(), IsOk());
  }

  std::unique_ptr<ModelWorld> world_;
};

TEST_P(ModelRandomTest, WhateverDiesTheRunIsThatOfOneProcess) {
  const uint64_t seed = GetParam();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  const std::vector<MeshShape> meshes = {{1, 2}, {2, 2}, {1, 3}, {2, 1}};
  world_ = std::make_unique<ModelWorld>(SmallModel(meshes[seed % meshes.size()]));
  const RandomTraining training(world_->layout(), seed, kNumSteps);
  world_->AttachAll();
  world_->BeginAll(UpdateKind::kInitialize);
  for (const auto& worker : world_->workers()) training.WriteInitial(*worker);
  world_->CommitAll();

  std::vector<std::unique_ptr<MortalWorker>> workers;
  for (const auto& worker : world_->workers()) {
    workers.push_back(std::make_unique<MortalWorker>(world_->model(), training, *worker, seed * 10 + workers.size()));
  }
  std::vector<std::thread> threads;
  for (const auto& worker : workers) threads.emplace_back([&worker] { worker->Run(); });
  std::atomic<bool> training_ended = false;
  std::thread puller([&] {
    while (!training_ended) {
      for (const char* name : {"block.weight", "head.weight", "tiny.gain"}) {
        for (const int ema : {-1, 0, 1}) ExpectPulled(training, name, ema);
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  training_ended = true;
  puller.join();

  ASSERT_EQ(world_->model().position().step, Step(kNumSteps));
  size_t num_deaths = 0;
  for (const auto& worker : workers) {
    training.ExpectShards(worker->worker(), Step(kNumSteps));
    num_deaths += static_cast<size_t>(worker->num_deaths());
  }
  const std::vector<std::string> trainable = *world_->model().SelectTensors({}, "default");
  for (const std::string& name : trainable) {
    for (const int ema : {-1, 0, 1}) ExpectPulled(training, name, ema);
  }
  for (const EmaPosition& position : world_->model().position().emas) EXPECT_EQ(position.step, Step(kNumSteps));
  // An epoch ends when a worker is lost or gives up, and for no other reason.
  size_t num_lost = 0;
  for (const auto& [cause, reason] : world_->observer().record().epochs_ended) {
    if (cause == AbortCause::kLeaseLost) {
      ++num_lost;
    } else {
      EXPECT_EQ(cause, AbortCause::kRejoin) << reason;
    }
  }
  EXPECT_EQ(num_lost, num_deaths);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelRandomTest, ::testing::Range<uint64_t>(1, 13));

}  // namespace
}  // namespace holdfast
