// Arenas as a daemon would hand them over, for tests of what maps them.
#ifndef HOLDFAST_TESTS_CLIENT_TEST_ARENA_H_
#define HOLDFAST_TESTS_CLIENT_TEST_ARENA_H_

#include <sys/mman.h>

#include <functional>

#include "client/mapped_arena.h"
#include "common/unique_fd.h"

namespace holdfast {

// A memfd of `size_bytes` whose header says what `expected` asks for, after `change` had its way with it.
inline UniqueFd MakeTestArena(const ArenaExpectation& expected, int64_t size_bytes,
                              const std::function<void(ArenaHeader&)>& change = {}) {
  UniqueFd fd(::memfd_create("test_arena", MFD_CLOEXEC));
  if (::ftruncate(fd.get(), size_bytes) != 0) return UniqueFd();
  void* page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return UniqueFd();
  auto& header = *static_cast<ArenaHeader*>(page);
  header.magic = kArenaMagic;
  header.version = kArenaVersion;
  header.purpose = static_cast<uint32_t>(expected.purpose);
  header.fingerprint = expected.fingerprint;
  header.size_bytes = static_cast<uint64_t>(expected.size_bytes);
  header.rank = expected.rank.value();
  header.num_words = static_cast<uint32_t>(expected.num_words);
  if (change) change(header);
  ::munmap(page, kPageBytes);
  return fd;
}

inline UniqueFd MakeTestArena(const ArenaExpectation& expected) { return MakeTestArena(expected, expected.size_bytes); }

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_CLIENT_TEST_ARENA_H_
