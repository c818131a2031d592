// A worker in the test's own process: a lease, a place in the epoch, and the rank's arenas, mapped as a worker maps
// them.
#ifndef HOLDFAST_TESTS_SERVER_CORE_TEST_WORKER_H_
#define HOLDFAST_TESTS_SERVER_CORE_TEST_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/arena_header.h"
#include "server/core/model.h"
#include "tests/server/core/pending.h"

namespace holdfast {

// Keeps what the holder of a lease is told. Thread-safe.
class RecordingListener : public LeaseListener {
 public:
  void OnEvent(const GroupEvent& event) override {
    absl::MutexLock lock(&mu_);
    events_.push_back(event);
  }
  void OnRevoked(const absl::Status& reason) override {
    absl::MutexLock lock(&mu_);
    revoked_.push_back(reason);
  }

  std::vector<GroupEvent> events() const {
    absl::MutexLock lock(&mu_);
    return events_;
  }
  std::vector<absl::Status> revoked() const {
    absl::MutexLock lock(&mu_);
    return revoked_;
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<GroupEvent> events_ ABSL_GUARDED_BY(mu_);
  std::vector<absl::Status> revoked_ ABSL_GUARDED_BY(mu_);
};

// Used by one thread. The model outlives it. Calls that need a sequence number take the next one; a call that was
// refused without using it is followed by TakeBack.
class TestWorker {
 public:
  // Takes the lease and maps the memory.
  static absl::StatusOr<std::unique_ptr<TestWorker>> Attach(Model& model, Rank rank, int32_t pid);
  // Unmaps; says nothing to the model.
  ~TestWorker();
  TestWorker(const TestWorker&) = delete;
  TestWorker& operator=(const TestWorker&) = delete;

  Rank rank() const { return rank_; }
  int32_t pid() const { return pid_; }
  const Attachment& attachment() const { return attachment_; }
  const RecordingListener& listener() const { return *listener_; }

  // Where it stands; a test may set them wrong.
  Epoch epoch;
  Step step;
  uint64_t sequence = 0;

  // A header with the next sequence number; the call takes `num_calls` of them.
  CallContext NextCall(uint64_t num_calls = 1);
  void TakeBack(uint64_t num_calls = 1) { sequence -= num_calls; }

  Pending<GatherResult> Gather(const std::string& unit, const std::vector<std::string>& prefetch = {},
                               const std::vector<std::string>& release = {});
  absl::Status Release(const std::vector<std::string>& units);
  Pending<Nothing> ReduceScatter(const std::string& unit, uint32_t gradient_slot = 0, bool accumulate = false);
  Pending<Nothing> BeginUpdate(UpdateKind kind = UpdateKind::kOptimizer);
  Pending<Step> CommitUpdate(bool ema_step = false);
  // At `step`.
  Pending<std::vector<EmaResult>> EmaStep(const std::vector<std::string>& emas = {});
  // Takes over epoch and step from the answer; sequence numbers start at 0.
  absl::StatusOr<ModelPosition> Rejoin();

  // The connection drops; the process may go on and keeps its mapping.
  void Disconnect();
  // The process is gone: both of its connections close, the lease's first.
  void Die();

  const ArenaHeader& Header(v1::MemoryPurpose purpose) const;
  // The whole data of an arena, behind its header page.
  absl::Span<std::byte> Data(v1::MemoryPurpose purpose) const;
  absl::Span<std::byte> Shard(const FlatParameter& flat) const;
  absl::Span<std::byte> Gradient(const FlatParameter& flat) const;
  absl::Span<std::byte> State(const FlatParameter& flat, size_t state) const;
  absl::Span<std::byte> Buffer(const BufferLayout& buffer) const;
  // Mapped read-only, both.
  absl::Span<const std::byte> Ema(const FlatParameter& flat, size_t ema) const;
  absl::Span<const std::byte> GatherSlot(int32_t slot, const FlatParameter& flat) const;
  absl::Span<std::byte> GradientSlot(int32_t slot, const FlatParameter& flat) const;

 private:
  TestWorker(Model& model, Rank rank, int32_t pid) : model_(model), rank_(rank), pid_(pid) {}

  absl::Status MapArenas();
  absl::Span<std::byte> At(v1::MemoryPurpose purpose, int64_t offset, int64_t size_bytes) const;
  absl::Span<std::byte> ShardAt(v1::MemoryPurpose purpose, int64_t offset, const FlatParameter& flat,
                                DType dtype) const;

  Model& model_;
  const Rank rank_;
  const int32_t pid_;
  const std::shared_ptr<RecordingListener> listener_ = std::make_shared<RecordingListener>();
  Attachment attachment_;
  // Whole arenas, header page included.
  std::map<v1::MemoryPurpose, absl::Span<std::byte>> arenas_;
  uint64_t num_calls_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_CORE_TEST_WORKER_H_
