// Shows ThreadSanitizer what absl::Mutex and absl::CondVar do.
//
// Debian's Abseil is a shared library that was built without ThreadSanitizer, so that every access under an absl::Mutex
// looks like a race. The functions here take the place of the library's, for this executable and for every library that
// it loads (so for gRPC too), tell ThreadSanitizer what happens, and call the library's own.
//
// Memory accesses between a pre_ and its post_ are not looked at. That is wanted: Abseil evaluates the Conditions of
// waiting threads on whichever thread unlocks.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace {

// Abseil's functions may be written with one another; ThreadSanitizer is told of the outermost call only.
thread_local int depth = 0;

class Call {
 public:
  Call() : outermost_(depth++ == 0) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { --depth; }

  bool outermost() const { return outermost_; }

 private:
  const bool outermost_;
};

template <typename Function>
Function* Library(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "absl_mutex_tsan.cc: no %s in the Abseil that is loaded; its names are of another version\n",
                 symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

template <typename Lock>
void Acquire(void* mutex, unsigned flags, Lock lock) {
  const Call call;
  if (call.outermost()) __tsan_mutex_pre_lock(mutex, flags);
  lock();
  if (call.outermost()) __tsan_mutex_post_lock(mutex, flags, 0);
}

template <typename TryLock>
bool TryAcquire(void* mutex, unsigned flags, TryLock try_lock) {
  const Call call;
  if (call.outermost()) __tsan_mutex_pre_lock(mutex, flags | __tsan_mutex_try_lock);
  const bool locked = try_lock();
  if (call.outermost()) {
    __tsan_mutex_post_lock(mutex, flags | __tsan_mutex_try_lock | (locked ? 0 : __tsan_mutex_try_lock_failed), 0);
  }
  return locked;
}

template <typename Unlock>
void Release(void* mutex, unsigned flags, Unlock unlock) {
  const Call call;
  if (call.outermost()) __tsan_mutex_pre_unlock(mutex, flags);
  unlock();
  if (call.outermost()) __tsan_mutex_post_unlock(mutex, flags);
}

// A wait gives the mutex up and takes it again. Abseil does not say whether it is held for reading; held for writing is
// what it is told, which hides nothing between writers. Nothing in holdfast waits with a reader's lock.
template <typename Wait>
auto WaitOn(void* mutex, Wait wait) {
  const Call call;
  if (call.outermost()) {
    __tsan_mutex_pre_unlock(mutex, 0);
    __tsan_mutex_post_unlock(mutex, 0);
    __tsan_mutex_pre_lock(mutex, 0);
  }
  const auto result = wait();
  if (call.outermost()) __tsan_mutex_post_lock(mutex, 0, 0);
  return result;
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() {
  static auto* const library = Library<void(Mutex*)>("_ZN4absl7debian35MutexD1Ev");
  __tsan_mutex_destroy(this, __tsan_mutex_not_static);
  const Call call;
  library(this);
}

void Mutex::Lock() {
  static auto* const library = Library<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  Acquire(this, 0, [this] { library(this); });
}

bool Mutex::TryLock() {
  static auto* const library = Library<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  return TryAcquire(this, 0, [this] { return library(this); });
}

void Mutex::Unlock() {
  static auto* const library = Library<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  Release(this, 0, [this] { library(this); });
}

void Mutex::ReaderLock() {
  static auto* const library = Library<void(Mutex*)>("_ZN4absl7debian35Mutex10ReaderLockEv");
  Acquire(this, __tsan_mutex_read_lock, [this] { library(this); });
}

bool Mutex::ReaderTryLock() {
  static auto* const library = Library<bool(Mutex*)>("_ZN4absl7debian35Mutex13ReaderTryLockEv");
  return TryAcquire(this, __tsan_mutex_read_lock, [this] { return library(this); });
}

void Mutex::ReaderUnlock() {
  static auto* const library = Library<void(Mutex*)>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  Release(this, __tsan_mutex_read_lock, [this] { library(this); });
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const library =
      Library<void(Mutex*, const Condition&)>("_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  Acquire(this, 0, [&] { library(this, condition); });
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  bool holds = false;
  Acquire(this, 0, [&] { holds = library(this, condition, timeout); });
  return holds;
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  bool holds = false;
  Acquire(this, 0, [&] { holds = library(this, condition, deadline); });
  return holds;
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  static auto* const library =
      Library<void(Mutex*, const Condition&)>("_ZN4absl7debian35Mutex14ReaderLockWhenERKNS0_9ConditionE");
  Acquire(this, __tsan_mutex_read_lock, [&] { library(this, condition); });
}

void Mutex::Await(const Condition& condition) {
  static auto* const library =
      Library<void(Mutex*, const Condition&)>("_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  WaitOn(this, [&] {
    library(this, condition);
    return true;
  });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  return WaitOn(this, [&] { return library(this, condition, timeout); });
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static auto* const library = Library<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  return WaitOn(this, [&] { return library(this, condition, deadline); });
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const library = Library<void(CondVar*, Mutex*)>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  WaitOn(mutex, [&] {
    library(this, mutex);
    return true;
  });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const library =
      Library<bool(CondVar*, Mutex*, Duration)>("_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return WaitOn(mutex, [&] { return library(this, mutex, timeout); });
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static auto* const library =
      Library<bool(CondVar*, Mutex*, Time)>("_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  return WaitOn(mutex, [&] { return library(this, mutex, deadline); });
}

// A waiter may see the flag before it takes the notification's own mutex.
void Notification::Notify() {
  static auto* const library = Library<void(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(this);
  library(this);
}

void Notification::WaitForNotification() const {
  static auto* const library =
      Library<void(const Notification*)>("_ZNK4absl7debian312Notification19WaitForNotificationEv");
  library(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const library = Library<bool(const Notification*, Duration)>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool notified = library(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const library = Library<bool(const Notification*, Time)>(
      "_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
  const bool notified = library(this, deadline);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
