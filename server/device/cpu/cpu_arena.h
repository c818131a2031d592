// An arena in anonymous shared memory (memfd).
#ifndef HOLDFAST_SERVER_DEVICE_CPU_CPU_ARENA_H_
#define HOLDFAST_SERVER_DEVICE_CPU_CPU_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/unique_fd.h"
#include "server/device/device.h"

namespace holdfast {

// The file is sealed against any change of its size, and of its seals, before anyone can see it: whoever maps it never
// gets a SIGBUS. Export and the accessors are thread-safe.
class CpuArena final : public Arena {
 public:
  // As Device::Allocate. Every page is taken and mapped now.
  static absl::StatusOr<std::unique_ptr<CpuArena>> Create(std::string_view label, int64_t size_bytes);

  ~CpuArena() override;
  CpuArena(const CpuArena&) = delete;
  CpuArena& operator=(const CpuArena&) = delete;

  ArenaHeader& header() override { return *reinterpret_cast<ArenaHeader*>(mapping_); }
  std::byte* data() override;
  int64_t size_bytes() const override { return size_bytes_; }

  // A read-only descriptor is a file description of its own, opened read-only. The file's mode is 0400, so that it
  // cannot be opened for writing by way of /proc either, except by a process with CAP_DAC_OVERRIDE.
  absl::StatusOr<UniqueFd> Export(bool writable) override;

 private:
  CpuArena(std::string_view label, UniqueFd fd, std::byte* mapping, int64_t size_bytes)
      : label_(label), fd_(std::move(fd)), mapping_(mapping), size_bytes_(size_bytes) {}

  const std::string label_;
  const UniqueFd fd_;
  std::byte* const mapping_;
  const int64_t size_bytes_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_CPU_ARENA_H_
