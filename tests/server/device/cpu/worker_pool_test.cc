#include "server/device/cpu/worker_pool.h"

#include <atomic>
#include <set>
#include <thread>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

std::unique_ptr<WorkerPool> Create(int num_threads) {
  absl::StatusOr<std::unique_ptr<WorkerPool>> pool = WorkerPool::Create(num_threads);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

TEST(WorkerPoolTest, Create_OutOfRange_IsRefused) {
  for (const int num_threads : {-1, 0, WorkerPool::kMaxThreads + 1}) {
    EXPECT_EQ(WorkerPool::Create(num_threads).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(WorkerPoolTest, ParallelFor_DoesEachChunkOnce) {
  for (const int num_threads : {1, 2, 3, 4}) {
    const std::unique_ptr<WorkerPool> pool = Create(num_threads);
    for (const int64_t num_chunks : {0, 1, 2, 3, 1000}) {
      // Plain integers: what the body wrote must be visible when ParallelFor returns.
      std::vector<int> done(static_cast<size_t>(num_chunks), 0);
      pool->ParallelFor(num_chunks, [&](int64_t chunk) { ++done[static_cast<size_t>(chunk)]; });
      EXPECT_EQ(done, std::vector<int>(static_cast<size_t>(num_chunks), 1));
    }
  }
}

TEST(WorkerPoolTest, ParallelFor_UsesAllThreadsAtATime) {
  constexpr int kThreads = 4;
  const std::unique_ptr<WorkerPool> pool = Create(kThreads);
  // Nobody passes the barrier before all four have come.
  absl::Barrier* const barrier = new absl::Barrier(kThreads);
  absl::Mutex mutex;
  std::set<std::thread::id> threads;
  pool->ParallelFor(kThreads, [&](int64_t) {
    {
      absl::MutexLock lock(&mutex);
      threads.insert(std::this_thread::get_id());
    }
    if (barrier->Block()) delete barrier;
  });
  EXPECT_EQ(threads.size(), static_cast<size_t>(kThreads));
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 1u);
}

TEST(WorkerPoolTest, ParallelFor_FromManyThreads_DoesAllOfEach) {
  const std::unique_ptr<WorkerPool> pool = Create(3);
  std::vector<int64_t> sums(8, 0);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums) {
    callers.emplace_back([&pool, &sum] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<int64_t> total{0};
        pool->ParallelFor(17, [&total](int64_t chunk) { total += chunk; });
        sum += total;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(8, 200 * 136));
}

TEST(WorkerPoolTest, ParallelFor_WithinABody_DoesNotBlock) {
  const std::unique_ptr<WorkerPool> pool = Create(2);
  std::atomic<int> done{0};
  pool->ParallelFor(8, [&](int64_t) { pool->ParallelFor(8, [&](int64_t) { ++done; }); });
  EXPECT_EQ(done, 64);
}

}  // namespace
}  // namespace holdfast
