// A small model on a real CPU device, and the workers of its ranks.
#ifndef HOLDFAST_TESTS_SERVER_CORE_MODEL_FIXTURE_H_
#define HOLDFAST_TESTS_SERVER_CORE_MODEL_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/collectives/local_collectives.h"
#include "server/core/model.h"
#include "server/device/cpu/cpu_device.h"
#include "server/device/cpu/worker_pool.h"
#include "tests/server/core/model_values.h"
#include "tests/server/core/pending.h"
#include "tests/server/core/recording_observer.h"
#include "tests/server/core/status_matchers.h"
#include "tests/server/core/test_worker.h"

namespace holdfast {

// Six units of odd sizes: "root" (a matrix, a 0-dim, a zero-size and a frozen parameter, buffers), "block" (trainable
// fp32, frozen fp16), "tiny" (one element), "head" (a tied weight and a bias), "table" (frozen integers only), "bare"
// (buffers only). Gathered as bf16, reduced as fp32; EMAs "default" (fp32, 0.5), "slow" (fp64, 0.75, every second
// step), "half" (bf16, 0.5); two optimizer states; three gather slots and two gradient slots.
v1::ModelSpec SmallModel(const MeshShape& mesh);
// As it is said in a spec.
v1::Mesh MeshSpec(const MeshShape& mesh);

// Indices of the units above.
inline constexpr UnitIndex kRoot{0};
inline constexpr UnitIndex kBlock{1};

class ModelWorld {
 public:
  // No worker is attached.
  explicit ModelWorld(const v1::ModelSpec& spec, absl::Duration collective_timeout = absl::Minutes(10),
                      int64_t staging_bytes = 1 << 20);
  // One with a worker on each rank, and the parameters of `ModelValues(layout, 1)`.
  static std::unique_ptr<ModelWorld> Initialized(const v1::ModelSpec& spec,
                                                 absl::Duration collective_timeout = absl::Minutes(10));

  Model& model() { return *model_; }
  const ModelLayout& layout() const { return model_->layout(); }
  const RecordingObserver& observer() const { return observer_; }
  Collectives& collectives() { return *collectives_; }
  int32_t num_ranks() const { return layout().mesh().world(); }
  TestWorker& worker(int32_t rank) { return *workers_[static_cast<size_t>(rank)]; }
  const std::vector<std::unique_ptr<TestWorker>>& workers() const { return workers_; }
  // By unit and number.
  const FlatParameter& flat(UnitIndex unit, size_t index) const { return layout().unit(unit).flat_parameters[index]; }

  // Puts a new worker, of a new process, on the rank.
  void Attach(int32_t rank);
  void AttachAll();
  void RejoinAll();

  // All ranks: BeginUpdate, write `values`, CommitUpdate.
  void Update(const ModelValues& values, UpdateKind kind = UpdateKind::kOptimizer, bool ema_step = false);
  // All ranks open an update.
  void BeginAll(UpdateKind kind = UpdateKind::kOptimizer);
  // All ranks commit, and stand on the new step.
  void CommitAll(bool ema_step = false);
  // All ranks; the tickets, by rank.
  std::vector<GatherTicket> GatherAll(const std::string& unit);

 private:
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<CpuDevice> device_;
  RecordingObserver observer_;
  StagingBudget staging_;
  // The model's own.
  Collectives* collectives_ = nullptr;
  std::unique_ptr<Model> model_;
  // By rank; ended ones stay, as their mapping does.
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::vector<std::unique_ptr<TestWorker>> former_workers_;
  int32_t num_processes_ = 0;
};

// Keeps the model's launch thread busy, so that what is queued behind it has certainly not been done.
class LaunchThreadHold {
 public:
  // Returns once the thread is held.
  explicit LaunchThreadHold(Model& model);
  ~LaunchThreadHold() { Release(); }
  void Release();

 private:
  absl::Notification held_;
  absl::Notification released_;
  Pending<Nothing> done_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_CORE_MODEL_FIXTURE_H_
