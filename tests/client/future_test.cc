#include "client/future.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast {
namespace {

TEST(FutureTest, DefaultConstructed_IsNotValid) { EXPECT_FALSE(Future<int>().valid()); }

TEST(FutureTest, ReadyFuture_AnswersAtOnce) {
  const Future<int> future = ReadyFuture<int>(7);
  EXPECT_TRUE(future.ready());
  EXPECT_EQ(future.Wait().value(), 7);
  EXPECT_EQ(future.WaitUntil(absl::InfinitePast())->value(), 7);
}

TEST(FutureTest, NoResultYet_WaitUntilReturnsNothingAtTheDeadline) {
  auto promise = std::make_shared<Promise<int>>();
  const Future<int> future(promise);
  EXPECT_FALSE(future.ready());
  EXPECT_FALSE(future.WaitUntil(absl::Now() + absl::Milliseconds(1)).has_value());
  promise->Set(1);
  EXPECT_TRUE(future.ready());
}

TEST(FutureTest, ErrorOfVoidFuture_IsAStatus) {
  const Future<void> future = ReadyFuture<void>(absl::AbortedError("rank 3 died"));
  const absl::Status status = future.Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "rank 3 died");
}

TEST(PromiseTest, SetTwice_FirstCounts) {
  Promise<std::string> promise;
  promise.Set(std::string("first"));
  promise.Set(absl::InternalError("second"));
  EXPECT_EQ(promise.Await(absl::InfiniteFuture())->value(), "first");
}

TEST(PromiseTest, SeveralWaiters_AllSeeTheResult) {
  auto promise = std::make_shared<Promise<int>>();
  std::vector<int> seen(4);
  std::vector<std::thread> waiters;
  for (int& value : seen) waiters.emplace_back([&value, future = Future<int>(promise)] { value = *future.Wait(); });
  promise->Set(42);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(seen, std::vector<int>(4, 42));
}

TEST(FutureTest, OutlivesThePromisesOwner) {
  Future<int> future;
  {
    auto promise = std::make_shared<Promise<int>>();
    future = Future<int>(promise);
    promise->Set(5);
  }
  EXPECT_EQ(future.Wait().value(), 5);
}

}  // namespace
}  // namespace holdfast
