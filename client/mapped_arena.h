// One arena in this process's address space.
#ifndef HOLDFAST_CLIENT_MAPPED_ARENA_H_
#define HOLDFAST_CLIENT_MAPPED_ARENA_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/arena_header.h"
#include "common/ids.h"
#include "common/layout.h"
#include "common/unique_fd.h"
#include "holdfast/v1/model.pb.h"

namespace holdfast {

// What an arena must be before it is touched.
struct ArenaExpectation {
  v1::MemoryPurpose purpose = v1::MEMORY_PURPOSE_UNSPECIFIED;
  // Header page included, > 0.
  int64_t size_bytes = 0;
  bool writable = false;
  uint64_t fingerprint = 0;
  Rank rank;
  // Slots of a ring; 0 for an arena that is none.
  int32_t num_words = 0;
};

// Owns a range of addresses, shows an arena there, and keeps the range until it is destroyed: pointers into it stay
// valid memory, whatever happens to the daemon. Left out of forked children. Move-only.
class MappedArena {
 public:
  MappedArena() = default;
  MappedArena(MappedArena&& other) noexcept;
  MappedArena& operator=(MappedArena&& other) noexcept;
  ~MappedArena();

  // Maps the descriptor, all pages of it, and checks the header page. INTERNAL: it is not what was expected; the
  // message says what differs.
  static absl::StatusOr<MappedArena> Map(const UniqueFd& fd, const ArenaExpectation& expected);

  // Gives the memory up, but not the addresses: they show zeros of this process's own until Remap.
  absl::Status Retire();
  // Shows another arena of the same size at the same addresses. On an error the arena is retired.
  absl::Status Remap(const UniqueFd& fd, const ArenaExpectation& expected);

  explicit operator bool() const { return base_ != nullptr; }
  const ArenaHeader& header() const { return *reinterpret_cast<const ArenaHeader*>(base_); }
  std::byte* data() const { return base_ + kPageBytes; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  MappedArena(std::byte* base, int64_t size_bytes) : base_(base), size_bytes_(size_bytes) {}

  std::byte* base_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_MAPPED_ARENA_H_
