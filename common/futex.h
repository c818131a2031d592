// Waiting for a completion word, and waking those who wait, across processes and without a call to the daemon.
#ifndef HOLDFAST_COMMON_FUTEX_H_
#define HOLDFAST_COMMON_FUTEX_H_

#include <cstdint>

#include "absl/time/time.h"
#include "common/arena_header.h"
#include "common/ids.h"

namespace holdfast {

enum class WaitResult {
  // The operation has ended and its result is good.
  kDone,
  // The word has passed the operation by: its epoch ended first, or its slot has been used again.
  kVoid,
  // The deadline came first.
  kTimeout,
};

// What `word` says of `completion` now; kTimeout if it has not ended.
WaitResult PollCompletion(const CompletionWord& word, Completion completion);

// Waits until `completion` has ended in the slot of `word`, or until `deadline`. Spins for some microseconds, then
// sleeps in the kernel. The mapping that holds `word` may be read-only, and in another process than the writer's.
// A deadline that has passed makes it a poll. Thread-safe.
WaitResult WaitForCompletion(const CompletionWord& word, Completion completion, absl::Time deadline);

// Stores `value`, with everything written before it visible to whoever then sees it, and wakes all who wait for `word`,
// in every process. Thread-safe.
void StoreAndWake(CompletionWord& word, uint64_t value);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_FUTEX_H_
