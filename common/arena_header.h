// The first page of every arena: what the memory is, at which step, and what has completed in it.
#ifndef HOLDFAST_COMMON_ARENA_HEADER_H_
#define HOLDFAST_COMMON_ARENA_HEADER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/ids.h"

namespace holdfast {

inline constexpr uint64_t kArenaMagic = 0x315453464f4c4448;  // "HDLOFST1"
inline constexpr uint32_t kArenaVersion = 1;
inline constexpr int kMaxSlots = 256;

// A completion word holds 2·c + v of the last operation that ended in its slot: c its Completion, and v = 1 if its
// result is void (its epoch ended first). It never falls. A worker that waits for Completion c waits until the word is
// ≥ 2·c; the result is good only if it is then exactly 2·c. Only the daemon writes words; on CUDA the same words are
// written and waited for on streams.
using CompletionWord = std::atomic<uint64_t>;

inline constexpr uint64_t DoneValue(Completion completion) { return completion.value() * 2; }
inline constexpr uint64_t VoidValue(Completion completion) { return completion.value() * 2 + 1; }

// Little-endian, lock-free atomics; written by the daemon only. The daemon never trusts what it reads here, as a
// worker may have a writable mapping.
struct ArenaHeader {
  uint64_t magic;
  uint32_t version;
  // A v1::MemoryPurpose.
  uint32_t purpose;
  // ModelLayout::fingerprint().
  uint64_t fingerprint;
  // Of the whole arena, bytes.
  uint64_t size_bytes;
  std::atomic<uint64_t> step;
  std::atomic<uint64_t> epoch;
  // Not 0: the contents are of no one step.
  std::atomic<uint32_t> torn;
  // Not 0: the contents have been initialised.
  std::atomic<uint32_t> initialized;
  int32_t rank;
  // Words in use: the ring's slots; 0 for an arena that is no ring.
  uint32_t num_words;
  std::byte reserved[64];
  CompletionWord words[kMaxSlots];
};

static_assert(sizeof(ArenaHeader) <= 4096);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_ARENA_HEADER_H_
