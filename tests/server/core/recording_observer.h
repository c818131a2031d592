// An observer that keeps what it is told.
#ifndef HOLDFAST_TESTS_SERVER_CORE_RECORDING_OBSERVER_H_
#define HOLDFAST_TESTS_SERVER_CORE_RECORDING_OBSERVER_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/core/observer.h"

namespace holdfast {

// What it has been told so far.
struct Record {
  std::vector<std::string> registered;
  std::vector<std::string> dropped;
  ModelPosition position;
  // Free, held, mapped.
  std::array<int32_t, 3> leases{};
  std::vector<std::pair<Rank, int32_t>> leases_taken;
  std::vector<std::pair<Rank, std::string>> leases_ended;
  std::vector<std::pair<AbortCause, std::string>> epochs_ended;
  int hits = 0;
  int misses = 0;
  int gathers = 0;
  int64_t gathered_bytes = 0;
  int reductions = 0;
  int64_t reduced_bytes = 0;
  int ema_passes = 0;
  int64_t ema_bytes = 0;
  int64_t pulled_bytes = 0;
};

// Thread-safe.
class RecordingObserver : public Observer {
 public:
  Record record() const {
    absl::MutexLock lock(&mu_);
    return record_;
  }

  void ModelRegistered(const ModelLayout& layout, int32_t) override {
    absl::MutexLock lock(&mu_);
    record_.registered.push_back(layout.name());
  }
  void ModelDropped(std::string_view model) override {
    absl::MutexLock lock(&mu_);
    record_.dropped.emplace_back(model);
  }
  void PositionChanged(std::string_view, const ModelPosition& position) override {
    absl::MutexLock lock(&mu_);
    record_.position = position;
  }
  void LeasesChanged(std::string_view, int32_t free, int32_t held, int32_t mapped) override {
    absl::MutexLock lock(&mu_);
    record_.leases = {free, held, mapped};
  }
  void LeaseTaken(std::string_view, Rank rank, int32_t pid) override {
    absl::MutexLock lock(&mu_);
    record_.leases_taken.emplace_back(rank, pid);
  }
  void LeaseEnded(std::string_view, Rank rank, int32_t, std::string_view reason) override {
    absl::MutexLock lock(&mu_);
    record_.leases_ended.emplace_back(rank, reason);
  }
  void EpochEnded(std::string_view, Epoch, AbortCause cause, std::string_view reason) override {
    absl::MutexLock lock(&mu_);
    record_.epochs_ended.emplace_back(cause, reason);
  }
  void Gathered(bool hit) override {
    absl::MutexLock lock(&mu_);
    ++(hit ? record_.hits : record_.misses);
  }
  void CollectiveDone(CollectiveKind kind, int64_t size_bytes, absl::Duration) override {
    absl::MutexLock lock(&mu_);
    const bool gather = kind == CollectiveKind::kAllGather;
    ++(gather ? record_.gathers : record_.reductions);
    (gather ? record_.gathered_bytes : record_.reduced_bytes) += size_bytes;
  }
  void EmaDone(int64_t size_bytes, absl::Duration) override {
    absl::MutexLock lock(&mu_);
    ++record_.ema_passes;
    record_.ema_bytes += size_bytes;
  }
  void Pulled(int64_t size_bytes) override {
    absl::MutexLock lock(&mu_);
    record_.pulled_bytes += size_bytes;
  }

 private:
  mutable absl::Mutex mu_;
  Record record_ ABSL_GUARDED_BY(mu_);
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_SERVER_CORE_RECORDING_OBSERVER_H_
