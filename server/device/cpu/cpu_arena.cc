#include "server/device/cpu/cpu_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/layout.h"
#include "server/device/cpu/available_memory.h"

namespace holdfast {
namespace {

absl::Status ArenaError(int error, const char* action, std::string_view label, int64_t size_bytes) {
  return absl::ErrnoToStatus(
      error, absl::StrCat("Cannot ", action, " arena '", std::string(label), "' of ", size_bytes, " bytes"));
}

absl::Status OutOfMemory(std::string_view label, int64_t size_bytes) {
  return absl::ResourceExhaustedError(absl::StrCat("Arena '", std::string(label), "' needs ", size_bytes,
                                                   " bytes, and ", AvailableMemoryBytes(),
                                                   " are available; drop a model, or shard over more ranks"));
}

absl::Status CheckSize(std::string_view label, int64_t size_bytes) {
  if (size_bytes < kPageBytes || size_bytes % kPageBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("Arena '", std::string(label), "' has ", size_bytes,
                                                   " bytes; it must be a multiple of ", kPageBytes, ", and not 0"));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CreateFile(std::string_view label, int64_t size_bytes) {
  // The kernel takes 249 bytes; the name is only shown in /proc/*/maps.
  const std::string name = absl::StrCat("holdfast-", std::string(label.substr(0, 200)));
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return ArenaError(errno, "create", label, size_bytes);
  if (fchmod(fd.get(), S_IRUSR) != 0) return ArenaError(errno, "protect", label, size_bytes);
  return fd;
}

// The kernel ends processes rather than let fallocate fail, hence the look beforehand.
absl::Status TakeMemory(const UniqueFd& fd, std::string_view label, int64_t size_bytes) {
  if (size_bytes > AvailableMemoryBytes()) return OutOfMemory(label, size_bytes);
  if (ftruncate(fd.get(), size_bytes) != 0) return ArenaError(errno, "size", label, size_bytes);
  int result = 0;
  do {
    result = fallocate(fd.get(), 0, 0, size_bytes);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  if (errno == ENOMEM || errno == ENOSPC) return OutOfMemory(label, size_bytes);
  return ArenaError(errno, "take the memory of", label, size_bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuArena>> CpuArena::Create(std::string_view label, int64_t size_bytes) {
  if (absl::Status status = CheckSize(label, size_bytes); !status.ok()) return status;
  absl::StatusOr<UniqueFd> fd = CreateFile(label, size_bytes);
  if (!fd.ok()) return fd.status();
  if (absl::Status status = TakeMemory(*fd, label, size_bytes); !status.ok()) return status;
  if (fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ArenaError(errno, "seal", label, size_bytes);
  }
  void* const mapping =
      mmap(nullptr, static_cast<size_t>(size_bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd->get(), 0);
  if (mapping == MAP_FAILED) return ArenaError(errno, "map", label, size_bytes);
  new (mapping) ArenaHeader();
  return std::unique_ptr<CpuArena>(new CpuArena(label, *std::move(fd), static_cast<std::byte*>(mapping), size_bytes));
}

CpuArena::~CpuArena() { munmap(mapping_, static_cast<size_t>(size_bytes_)); }

std::byte* CpuArena::data() { return mapping_ + kPageBytes; }

absl::StatusOr<UniqueFd> CpuArena::Export(bool writable) {
  UniqueFd fd(writable ? fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)
                       : open(absl::StrCat("/proc/self/fd/", fd_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ArenaError(errno, "export", label_, size_bytes_);
  return fd;
}

}  // namespace holdfast
