// How many bytes all Pull streams together may hold.
#ifndef HOLDFAST_SERVER_CORE_STAGING_BUDGET_H_
#define HOLDFAST_SERVER_CORE_STAGING_BUDGET_H_

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"

namespace holdfast {

// Thread-safe; outlives its reservations.
class StagingBudget {
 public:
  // Bytes that are held until it is destroyed.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(StagingBudget* budget, int64_t size_bytes) : budget_(budget), size_bytes_(size_bytes) {}
    Reservation(Reservation&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), size_bytes_(other.size_bytes_) {}
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(size_bytes_, other.size_bytes_);
      return *this;
    }
    ~Reservation() {
      if (budget_ != nullptr) budget_->Return(size_bytes_);
    }

   private:
    StagingBudget* budget_ = nullptr;
    int64_t size_bytes_ = 0;
  };

  explicit StagingBudget(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // RESOURCE_EXHAUSTED if it can't be had now, or ever.
  absl::StatusOr<Reservation> Reserve(int64_t size_bytes) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    if (size_bytes > limit_bytes_ - used_bytes_) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("a tensor of %d bytes is to be pulled; %d of %d bytes are staged for other Pull streams; %s",
                          size_bytes, used_bytes_, limit_bytes_,
                          size_bytes > limit_bytes_ ? "raise pull_staging_bytes of the daemon" : "pull again later"));
    }
    used_bytes_ += size_bytes;
    return Reservation(this, size_bytes);
  }

 private:
  void Return(int64_t size_bytes) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    used_bytes_ -= size_bytes;
  }

  const int64_t limit_bytes_;
  absl::Mutex mu_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_STAGING_BUDGET_H_
