// A fixed number of threads that share the element-wise work of a process.
#ifndef HOLDFAST_SERVER_DEVICE_CPU_WORKER_POOL_H_
#define HOLDFAST_SERVER_DEVICE_CPU_WORKER_POOL_H_

#include <cstdint>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace holdfast {

// Thread-safe. Devices and collectives share one by pointer; it outlives them.
class WorkerPool {
 public:
  static constexpr int kMaxThreads = 256;

  // `num_threads`, 1 to kMaxThreads, counts the thread that calls ParallelFor: 1 makes no thread at all.
  // INVALID_ARGUMENT out of that range; RESOURCE_EXHAUSTED if the system gives no more threads.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Create(int num_threads);

  // No ParallelFor may be under way.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls body(i) once for each i of [0, num_chunks), on several threads at a time and in no order, and returns when
  // all calls have. The caller takes part, so that calls from several threads, or from a body, cannot block each other.
  void ParallelFor(int64_t num_chunks, absl::FunctionRef<void(int64_t)> body) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Job;

  explicit WorkerPool(int num_threads) : num_threads_(num_threads) {}

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes `job` out of open_jobs_, if it still is there.
  void Close(Job* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int num_threads_;
  std::vector<std::thread> threads_;

  absl::Mutex mutex_;
  absl::CondVar work_available_;
  // Jobs with chunks that nobody has begun, the oldest first; each lies on the stack of its caller.
  std::list<Job*> open_jobs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_WORKER_POOL_H_
