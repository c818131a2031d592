// Two threads count up together, in the way the argument names. ThreadSanitizer must find the one race there is, and
// must not find one where absl's locks are used as they should be.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace {

constexpr int kRounds = 20000;

void InTwoThreads(const std::function<void(int)>& body) {
  std::thread other([&] { body(1); });
  body(0);
  other.join();
}

void Racy(int& count) {
  InTwoThreads([&](int) {
    for (int i = 0; i < kRounds; ++i) ++count;
  });
}

// Each thread has a lock, but not the same one.
void WrongLock(int& count) {
  absl::Mutex mutexes[2];
  InTwoThreads([&](int me) {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutexes[me]);
      ++count;
    }
  });
}

void Locked(int& count) {
  absl::Mutex mutex;
  InTwoThreads([&](int) {
    for (int i = 0; i < kRounds; ++i) {
      absl::MutexLock lock(&mutex);
      ++count;
    }
  });
}

void TryLocked(int& count) {
  absl::Mutex mutex;
  InTwoThreads([&](int) {
    for (int i = 0; i < kRounds;) {
      if (!mutex.TryLock()) continue;
      ++count;
      ++i;
      mutex.Unlock();
    }
  });
}

// The threads take turns; each evaluates the other's condition when it unlocks.
void Awaited(int& count) {
  absl::Mutex mutex;
  InTwoThreads([&](int me) {
    for (int i = 0; i < kRounds / 10; ++i) {
      const auto my_turn = [&] { return count % 2 == me; };
      if (i % 2 == 0) {
        absl::MutexLock lock(&mutex);
        mutex.Await(absl::Condition(&my_turn));
        ++count;
      } else {
        mutex.LockWhen(absl::Condition(&my_turn));
        ++count;
        mutex.Unlock();
      }
    }
  });
}

void Signalled(int& count) {
  absl::Mutex mutex;
  absl::CondVar changed;
  InTwoThreads([&](int me) {
    for (int i = 0; i < kRounds / 10; ++i) {
      absl::MutexLock lock(&mutex);
      while (count % 2 != me) changed.Wait(&mutex);
      ++count;
      changed.SignalAll();
    }
  });
}

void Notified(int& count) {
  for (int i = 0; i < kRounds / 100; ++i) {
    absl::Notification done;
    std::thread writer([&] {
      ++count;
      done.Notify();
    });
    done.WaitForNotification();
    ++count;
    writer.join();
  }
}

// Readers share; the writer is alone.
void ReaderLocked(int& count) {
  absl::Mutex mutex;
  InTwoThreads([&](int me) {
    int sum = 0;
    for (int i = 0; i < kRounds; ++i) {
      if (me == 0 && i % 10 == 0) {
        absl::WriterMutexLock lock(&mutex);
        ++count;
      } else {
        absl::ReaderMutexLock lock(&mutex);
        sum += count;
      }
    }
    absl::MutexLock lock(&mutex);
    if (sum < 0) count = 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(int&)>> ways = {
      {"racy", Racy},       {"wrong_lock", WrongLock}, {"locked", Locked},     {"try_locked", TryLocked},
      {"awaited", Awaited}, {"signalled", Signalled},  {"notified", Notified}, {"reader_locked", ReaderLocked},
  };
  const auto way = ways.find(argc == 2 ? argv[1] : "");
  if (way == ways.end()) {
    std::fprintf(stderr,
                 "usage: tsan_counter racy|wrong_lock|locked|try_locked|awaited|signalled|notified|reader_locked\n");
    return 2;
  }
  int count = 0;
  way->second(count);
  std::printf("%s: %d\n", way->first.c_str(), count);
  return 0;
}
