#include "server/device/cpu/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace holdfast {

struct WorkerPool::Job {
  Job(int64_t num_chunks, absl::FunctionRef<void(int64_t)> body) : num_chunks(num_chunks), body(body) {}

  // Does chunks until all have been begun.
  void Run() {
    for (int64_t i = next.fetch_add(1); i < num_chunks; i = next.fetch_add(1)) body(i);
  }

  const int64_t num_chunks;
  const absl::FunctionRef<void(int64_t)> body;
  std::atomic<int64_t> next{0};
  // Threads of the pool that are at it; guarded by the pool's mutex.
  int num_helpers = 0;
  absl::CondVar helper_left;
};

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Create(int num_threads) {
  if (num_threads < 1 || num_threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("A worker pool has 1 to ", kMaxThreads, " threads, not ", num_threads));
  }
  std::unique_ptr<WorkerPool> pool(new WorkerPool(num_threads));
  try {
    for (int i = 1; i < num_threads; ++i) pool->threads_.emplace_back([pool = pool.get()] { pool->Work(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("Cannot start thread ", pool->threads_.size() + 1, " of ",
                                                     num_threads, ": ", error.what(),
                                                     "; configure fewer compute threads or raise the limit"));
  }
  return pool;
}

WorkerPool::~WorkerPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    work_available_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::ParallelFor(int64_t num_chunks, absl::FunctionRef<void(int64_t)> body) {
  // Work for one thread: waking others would take longer.
  if (num_chunks <= 1 || num_threads_ == 1) {
    for (int64_t i = 0; i < num_chunks; ++i) body(i);
    return;
  }
  Job job(num_chunks, body);
  {
    absl::MutexLock lock(&mutex_);
    open_jobs_.push_back(&job);
    const int64_t helpers = std::min<int64_t>(num_chunks, num_threads_) - 1;
    for (int64_t i = 0; i < helpers; ++i) work_available_.Signal();
  }
  job.Run();
  absl::MutexLock lock(&mutex_);
  Close(&job);
  while (job.num_helpers > 0) job.helper_left.Wait(&mutex_);
}

void WorkerPool::Work() {
  mutex_.Lock();
  while (!stopping_) {
    if (open_jobs_.empty()) {
      work_available_.Wait(&mutex_);
      continue;
    }
    Job* job = open_jobs_.front();
    ++job->num_helpers;
    mutex_.Unlock();
    job->Run();
    mutex_.Lock();
    Close(job);
    // The caller returns, and the job is gone, only when the lock is free again.
    if (--job->num_helpers == 0) job->helper_left.Signal();
  }
  mutex_.Unlock();
}

void WorkerPool::Close(Job* job) {
  const auto position = std::find(open_jobs_.begin(), open_jobs_.end(), job);
  if (position != open_jobs_.end()) open_jobs_.erase(position);
}

}  // namespace holdfast
