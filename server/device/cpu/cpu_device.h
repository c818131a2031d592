// The memory and the processors of this machine as a device.
#ifndef HOLDFAST_SERVER_DEVICE_CPU_CPU_DEVICE_H_
#define HOLDFAST_SERVER_DEVICE_CPU_CPU_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/cpu/instruction_set.h"
#include "server/device/cpu/kernels/kernels.h"
#include "server/device/cpu/worker_pool.h"
#include "server/device/device.h"

namespace holdfast {

// Work is done when the call that enqueues it returns, by the threads of `pool`. Holds no state of its own between
// calls, and so is thread-safe. The bits of a result depend neither on the number of threads nor on the instruction
// set. INVALID_ARGUMENT names a task that contradicts device.h, and then none of the call's tasks has been begun.
class CpuDevice final : public Device {
 public:
  // `pool` outlives the device. FAILED_PRECONDITION if this machine has not the instructions.
  static absl::StatusOr<std::unique_ptr<CpuDevice>> Create(WorkerPool* pool,
                                                           InstructionSet instruction_set = BestInstructionSet());

  std::string_view name() const override { return "cpu"; }
  int64_t AvailableBytes() const override;
  absl::StatusOr<std::unique_ptr<Arena>> Allocate(std::string_view label, int64_t size_bytes) override;
  absl::StatusOr<std::unique_ptr<Stream>> CreateStream() override;

  absl::Status Copy(Stream& stream, absl::Span<const CopyTask> tasks) override;
  absl::Status Ema(Stream& stream, absl::Span<const EmaTask> tasks) override;
  absl::Status Signal(Stream& stream, CompletionWord& word, uint64_t value) override;
  absl::Status Synchronize(Stream& stream) override;

 private:
  CpuDevice(WorkerPool* pool, const Kernels* kernels) : pool_(pool), kernels_(kernels) {}

  WorkerPool* const pool_;
  const Kernels* const kernels_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_CPU_DEVICE_H_
