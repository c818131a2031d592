#include "client/mapped_arena.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

std::string NameOf(const ArenaExpectation& expected) {
  return absl::StrCat("arena ", v1::MemoryPurpose_Name(expected.purpose), " of rank ", expected.rank.value());
}

absl::Status Errno(const std::string& what, const ArenaExpectation& expected) {
  return absl::ErrnoToStatus(errno, absl::StrCat(NameOf(expected), ", ", expected.size_bytes, " bytes: ", what));
}

template <typename A, typename B>
absl::Status Differs(const ArenaExpectation& expected, const std::string& field, A actual, B wanted) {
  return absl::InternalError(absl::StrCat(NameOf(expected), ": its ", field, " is ", actual, ", expected ", wanted,
                                          ": the daemon and this client do not fit together"));
}

absl::Status CheckHeader(const ArenaHeader& header, const ArenaExpectation& expected) {
  if (header.magic != kArenaMagic) {
    return Differs(expected, "magic number", absl::Hex(header.magic), absl::Hex(kArenaMagic));
  }
  if (header.version != kArenaVersion) return Differs(expected, "format version", header.version, kArenaVersion);
  if (header.purpose != static_cast<uint32_t>(expected.purpose)) {
    return Differs(expected, "purpose", header.purpose, static_cast<uint32_t>(expected.purpose));
  }
  if (header.fingerprint != expected.fingerprint) {
    return Differs(expected, "fingerprint", FingerprintText(header.fingerprint), FingerprintText(expected.fingerprint));
  }
  if (header.size_bytes != static_cast<uint64_t>(expected.size_bytes)) {
    return Differs(expected, "size", header.size_bytes, expected.size_bytes);
  }
  if (header.rank != expected.rank.value()) return Differs(expected, "rank", header.rank, expected.rank.value());
  if (header.num_words != static_cast<uint32_t>(expected.num_words)) {
    return Differs(expected, "number of completion words", header.num_words, expected.num_words);
  }
  return absl::OkStatus();
}

// Maps at `address`, or anywhere for null.
absl::StatusOr<std::byte*> MapDescriptor(void* address, const UniqueFd& fd, const ArenaExpectation& expected) {
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return Errno("fstat", expected);
  // A mapping that reaches beyond the end would be a SIGBUS later.
  if (info.st_size != expected.size_bytes) return Differs(expected, "file's size", info.st_size, expected.size_bytes);
  const int protection = PROT_READ | (expected.writable ? PROT_WRITE : 0);
  const int flags = MAP_SHARED | MAP_POPULATE | (address != nullptr ? MAP_FIXED : 0);
  const auto length = static_cast<size_t>(expected.size_bytes);
  void* base = ::mmap(address, length, protection, flags, fd.get(), 0);
  if (base == MAP_FAILED) return Errno("mmap", expected);
  if (::madvise(base, length, MADV_DONTFORK) != 0) {
    absl::Status status = Errno("madvise(MADV_DONTFORK)", expected);
    if (address == nullptr) ::munmap(base, length);
    return status;
  }
  return static_cast<std::byte*>(base);
}

}  // namespace

MappedArena::MappedArena(MappedArena&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedArena& MappedArena::operator=(MappedArena&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedArena::~MappedArena() {
  if (base_ != nullptr) ::munmap(base_, static_cast<size_t>(size_bytes_));
}

absl::StatusOr<MappedArena> MappedArena::Map(const UniqueFd& fd, const ArenaExpectation& expected) {
  absl::StatusOr<std::byte*> base = MapDescriptor(nullptr, fd, expected);
  if (!base.ok()) return base.status();
  MappedArena arena(*base, expected.size_bytes);
  if (absl::Status status = CheckHeader(arena.header(), expected); !status.ok()) return status;
  return arena;
}

absl::Status MappedArena::Retire() {
  const auto length = static_cast<size_t>(size_bytes_);
  void* base =
      ::mmap(base_, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return absl::ErrnoToStatus(errno, absl::StrCat("giving up ", size_bytes_, " mapped bytes"));
  return absl::OkStatus();
}

absl::Status MappedArena::Remap(const UniqueFd& fd, const ArenaExpectation& expected) {
  if (expected.size_bytes != size_bytes_) return Differs(expected, "size", expected.size_bytes, size_bytes_);
  absl::Status status = MapDescriptor(base_, fd, expected).status();
  if (status.ok()) status = CheckHeader(header(), expected);
  if (!status.ok()) Retire().IgnoreError();
  return status;
}

}  // namespace holdfast
