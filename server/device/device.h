// A device: the memory of one rank, and the element-wise work on it. One implementation a backend.
#ifndef HOLDFAST_SERVER_DEVICE_DEVICE_H_
#define HOLDFAST_SERVER_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/arena_header.h"
#include "common/dtype.h"
#include "common/unique_fd.h"

namespace holdfast {

// One arena. The header page is host memory on every backend; the data are on the device. Zeroed when allocated,
// freed with the object. Worker processes that mapped it keep their mapping.
class Arena {
 public:
  virtual ~Arena() = default;

  virtual ArenaHeader& header() = 0;
  // The first byte behind the header page; a device address.
  virtual std::byte* data() = 0;
  // Header page included.
  virtual int64_t size_bytes() const = 0;
  // A new descriptor for another process: one that can be mapped for writing, or one that cannot. Neither can be
  // resized.
  virtual absl::StatusOr<UniqueFd> Export(bool writable) = 0;
};

// Work of one device, done in the order in which it was enqueued.
class Stream {
 public:
  virtual ~Stream() = default;
};

// dst[i] = src[i] for num_elements, converted where the dtypes differ (both arithmetic then). No overlap.
struct CopyTask {
  const void* src = nullptr;
  DType src_dtype = DType::kUnspecified;
  void* dst = nullptr;
  DType dst_dtype = DType::kUnspecified;
  int64_t num_elements = 0;
};

// ema[i] = decay · ema[i] + (1 − decay) · parameter[i], in float32 (in float64 where either is float64), one pass.
struct EmaTask {
  const void* parameter = nullptr;
  DType parameter_dtype = DType::kUnspecified;
  void* ema = nullptr;
  // float32, float64 or bfloat16; bfloat16 is rounded stochastically.
  DType ema_dtype = DType::kUnspecified;
  int64_t num_elements = 0;
  double decay = 0;
  // For the random bits of stochastic rounding: element i draws them from (seed, first_element + i).
  uint64_t seed = 0;
  uint64_t first_element = 0;
};

// Not thread-safe for one stream; several threads may use several streams. Work is enqueued; it has been done when
// Synchronize returns (the CPU does it at once). Pointers must stay valid until then.
class Device {
 public:
  virtual ~Device() = default;

  // "cpu", or a GPU's UUID.
  virtual std::string_view name() const = 0;
  // Memory that could be allocated now, bytes.
  virtual int64_t AvailableBytes() const = 0;
  // `size_bytes` is a multiple of kPageBytes and counts the header page. All of it is taken now.
  // RESOURCE_EXHAUSTED names `label` and the size.
  virtual absl::StatusOr<std::unique_ptr<Arena>> Allocate(std::string_view label, int64_t size_bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream() = 0;

  virtual absl::Status Copy(Stream& stream, absl::Span<const CopyTask> tasks) = 0;
  virtual absl::Status Ema(Stream& stream, absl::Span<const EmaTask> tasks) = 0;
  // Stores `value` and wakes whoever waits for the word, in stream order.
  virtual absl::Status Signal(Stream& stream, CompletionWord& word, uint64_t value) = 0;
  virtual absl::Status Synchronize(Stream& stream) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_DEVICE_H_
