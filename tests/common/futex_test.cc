#include "common/futex.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/unique_fd.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

// A word in a file, mapped once to write and once only to read, as the daemon and a worker have it.
class SharedWord {
 public:
  SharedWord() : fd_(memfd_create("futex_test", MFD_CLOEXEC)) {
    if (ftruncate(fd_.get(), 4096) != 0) std::abort();
    void* const written = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    void* const read = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd_.get(), 0);
    if (written == MAP_FAILED || read == MAP_FAILED) std::abort();
    writer_ = new (written) CompletionWord(0);
    reader_ = static_cast<const CompletionWord*>(read);
  }
  ~SharedWord() {
    munmap(writer_, 4096);
    munmap(const_cast<CompletionWord*>(reader_), 4096);
  }

  CompletionWord& writer() { return *writer_; }
  const CompletionWord& reader() const { return *reader_; }

 private:
  UniqueFd fd_;
  CompletionWord* writer_;
  const CompletionWord* reader_;
};

constexpr Completion kThird(3);

TEST(FutexTest, PollCompletion_TellsWhatTheWordSays) {
  CompletionWord word(0);
  EXPECT_EQ(PollCompletion(word, kThird), WaitResult::kTimeout);
  word = VoidValue(Completion(2));
  EXPECT_EQ(PollCompletion(word, kThird), WaitResult::kTimeout);
  word = DoneValue(kThird);
  EXPECT_EQ(PollCompletion(word, kThird), WaitResult::kDone);
  word = VoidValue(kThird);
  EXPECT_EQ(PollCompletion(word, kThird), WaitResult::kVoid);
  // Something later has ended in the slot: the result of this one is gone.
  word = DoneValue(Completion(4));
  EXPECT_EQ(PollCompletion(word, kThird), WaitResult::kVoid);
}

TEST(FutexTest, WaitForCompletion_AlreadyThere_ReturnsThoughTheDeadlineHasPassed) {
  SharedWord word;
  StoreAndWake(word.writer(), DoneValue(kThird));
  EXPECT_EQ(WaitForCompletion(word.reader(), kThird, absl::InfinitePast()), WaitResult::kDone);
}

TEST(FutexTest, WaitForCompletion_NeverThere_ReturnsAtTheDeadline) {
  SharedWord word;
  EXPECT_EQ(WaitForCompletion(word.reader(), kThird, absl::InfinitePast()), WaitResult::kTimeout);
  const absl::Time deadline = absl::Now() + absl::Milliseconds(20);
  EXPECT_EQ(WaitForCompletion(word.reader(), kThird, deadline), WaitResult::kTimeout);
  EXPECT_GE(absl::Now(), deadline);
}

TEST(FutexTest, WaitForCompletion_SeveralThreads_AllSeeWhatWasWrittenBefore) {
  SharedWord word;
  int result = 0;
  std::vector<WaitResult> waited(4, WaitResult::kTimeout);
  std::vector<int> seen(4, 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < waited.size(); ++i) {
    threads.emplace_back([&, i] {
      // By the writer's mapping: ThreadSanitizer does not know that two addresses are one word.
      waited[i] = WaitForCompletion(word.writer(), kThird, absl::InfiniteFuture());
      seen[i] = result;
    });
  }
  // Earlier completions wake the waiters, too, and must leave them waiting.
  StoreAndWake(word.writer(), DoneValue(Completion(1)));
  StoreAndWake(word.writer(), VoidValue(Completion(2)));
  result = 42;
  StoreAndWake(word.writer(), DoneValue(kThird));
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < waited.size(); ++i) {
    EXPECT_EQ(waited[i], WaitResult::kDone);
    EXPECT_EQ(seen[i], 42);
  }
}

TEST(FutexTest, WaitForCompletion_Void_IsToldFromDone) {
  SharedWord word;
  std::thread writer([&] { StoreAndWake(word.writer(), VoidValue(kThird)); });
  EXPECT_EQ(WaitForCompletion(word.reader(), kThird, absl::InfiniteFuture()), WaitResult::kVoid);
  writer.join();
}

// True if the process sleeps in the kernel.
bool IsAsleep(pid_t pid) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  FILE* const file = fopen(path, "r");
  if (file == nullptr) return false;
  char state = 0;
  const int fields = fscanf(file, "%*d (%*[^)]) %c", &state);
  fclose(file);
  return fields == 1 && state == 'S';
}

TEST(FutexTest, StoreAndWake_WakesAnotherProcessThatSleepsOnAReadOnlyMapping) {
  SharedWord word;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const WaitResult result = WaitForCompletion(word.reader(), kThird, absl::Now() + absl::Seconds(60));
    _exit(result == WaitResult::kDone ? 0 : 1);
  }
  while (!IsAsleep(child)) std::this_thread::yield();
  StoreAndWake(word.writer(), DoneValue(kThird));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace holdfast
