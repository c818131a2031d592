#include "server/core/launch_queue.h"

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

TEST(LaunchQueueTest, RunsInTheOrderOfThePushesOnOneThread) {
  std::vector<int> ran;
  std::vector<std::thread::id> threads;
  {
    LaunchQueue queue;
    for (int i = 0; i < 100; ++i) {
      queue.Push([i, &ran, &threads] {
        ran.push_back(i);
        threads.push_back(std::this_thread::get_id());
      });
    }
  }
  ASSERT_EQ(ran.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ran[static_cast<size_t>(i)], i);
    EXPECT_EQ(threads[static_cast<size_t>(i)], threads[0]);
  }
  EXPECT_NE(threads[0], std::this_thread::get_id());
}

TEST(LaunchQueueTest, KeepsTheOrderOfEachPusherAmongMany) {
  constexpr int kPushers = 4, kPushes = 200;
  std::vector<std::pair<int, int>> ran;
  {
    LaunchQueue queue;
    std::vector<std::thread> pushers;
    for (int pusher = 0; pusher < kPushers; ++pusher) {
      pushers.emplace_back([pusher, &queue, &ran] {
        for (int i = 0; i < kPushes; ++i) queue.Push([pusher, i, &ran] { ran.emplace_back(pusher, i); });
      });
    }
    for (std::thread& pusher : pushers) pusher.join();
  }
  std::vector<int> next(kPushers);
  ASSERT_EQ(ran.size(), static_cast<size_t>(kPushers * kPushes));
  for (const auto& [pusher, i] : ran) EXPECT_EQ(i, next[static_cast<size_t>(pusher)]++);
}

TEST(LaunchQueueTest, EndsOnlyWhenEverythingHasRunWhatWorkPushesIncluded) {
  int ran = 0;
  absl::Notification held;
  {
    LaunchQueue queue;
    queue.Push([&] {
      held.WaitForNotification();
      queue.Push([&ran] { ++ran; });
      ++ran;
    });
    queue.Push([&ran] { ++ran; });
    held.Notify();
  }
  EXPECT_EQ(ran, 3);
}

}  // namespace
}  // namespace holdfast
