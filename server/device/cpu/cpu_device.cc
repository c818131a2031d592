#include "server/device/cpu/cpu_device.h"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/futex.h"
#include "server/device/cpu/available_memory.h"
#include "server/device/cpu/cpu_arena.h"
#include "server/device/cpu/kernels/dispatch.h"
#include "server/device/cpu/task_chunks.h"

namespace holdfast {
namespace {

// Some 100 µs of work for one thread: long against handing it out, short against the whole.
constexpr int64_t kChunkElements = 64 * 1024;

class CpuStream final : public Stream {};

absl::Status TaskError(const char* call, size_t task, const std::string& fault) {
  return absl::InvalidArgumentError(absl::StrCat(call, ", task ", task, ": ", fault));
}

std::string Pair(DType first, DType second) {
  return absl::StrCat(std::string(Name(first)), " and ", std::string(Name(second)));
}

absl::Status Check(size_t index, const CopyTask& task) {
  if (task.num_elements < 0) return TaskError("Copy", index, absl::StrCat("num_elements is ", task.num_elements));
  if (SizeOf(task.src_dtype) == 0 || SizeOf(task.dst_dtype) == 0) return TaskError("Copy", index, "a dtype is missing");
  if (task.src_dtype != task.dst_dtype && !(IsArithmetic(task.src_dtype) && IsArithmetic(task.dst_dtype))) {
    return TaskError("Copy", index,
                     absl::StrCat("no conversion between ", Pair(task.src_dtype, task.dst_dtype),
                                  "; only float32, bfloat16, float16 and float64 are converted"));
  }
  if (task.num_elements > 0 && (task.src == nullptr || task.dst == nullptr)) {
    return TaskError("Copy", index, "an address is null");
  }
  return absl::OkStatus();
}

absl::Status Check(size_t index, const EmaTask& task) {
  if (task.num_elements < 0) return TaskError("Ema", index, absl::StrCat("num_elements is ", task.num_elements));
  if (!IsArithmetic(task.parameter_dtype) || !IsArithmetic(task.ema_dtype) || task.ema_dtype == DType::kFloat16) {
    return TaskError("Ema", index,
                     absl::StrCat("parameter and EMA are ", Pair(task.parameter_dtype, task.ema_dtype),
                                  "; the EMA must be float32, float64 or bfloat16, the parameter one of these or "
                                  "float16"));
  }
  if (!(task.decay >= 0 && task.decay <= 1)) {
    return TaskError("Ema", index, absl::StrCat("decay is ", task.decay, "; it must be within 0 and 1"));
  }
  if (task.num_elements > 0 && (task.parameter == nullptr || task.ema == nullptr)) {
    return TaskError("Ema", index, "an address is null");
  }
  return absl::OkStatus();
}

// All tasks are checked before the first is begun.
template <typename Task>
absl::StatusOr<TaskChunks> Cut(absl::Span<const Task> tasks) {
  std::vector<int64_t> elements;
  elements.reserve(tasks.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (absl::Status status = Check(i, tasks[i]); !status.ok()) return status;
    elements.push_back(tasks[i].num_elements);
  }
  return TaskChunks(elements, kChunkElements);
}

const std::byte* At(const void* base, DType dtype, int64_t element) {
  return static_cast<const std::byte*>(base) + element * SizeOf(dtype);
}

std::byte* At(void* base, DType dtype, int64_t element) {
  return static_cast<std::byte*>(base) + element * SizeOf(dtype);
}

void CopyPiece(const Kernels& kernels, const CopyTask& task, int64_t first, int64_t num_elements) {
  const std::byte* const src = At(task.src, task.src_dtype, first);
  std::byte* const dst = At(task.dst, task.dst_dtype, first);
  if (task.src_dtype == task.dst_dtype) {
    std::memcpy(dst, src, static_cast<size_t>(num_elements * SizeOf(task.src_dtype)));
  } else {
    Select(kernels.convert, task.src_dtype, task.dst_dtype)(src, dst, num_elements);
  }
}

void EmaPiece(const Kernels& kernels, const EmaTask& task, int64_t first, int64_t num_elements) {
  Select(kernels.ema, task.parameter_dtype, task.ema_dtype)(EmaArguments{
      .parameter = At(task.parameter, task.parameter_dtype, first),
      .ema = At(task.ema, task.ema_dtype, first),
      .num_elements = num_elements,
      .decay = task.decay,
      .seed = task.seed,
      .first_element = task.first_element + static_cast<uint64_t>(first),
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuDevice>> CpuDevice::Create(WorkerPool* pool, InstructionSet instruction_set) {
  absl::StatusOr<const Kernels*> kernels = KernelsFor(instruction_set);
  if (!kernels.ok()) return kernels.status();
  return std::unique_ptr<CpuDevice>(new CpuDevice(pool, *kernels));
}

int64_t CpuDevice::AvailableBytes() const { return AvailableMemoryBytes(); }

absl::StatusOr<std::unique_ptr<Arena>> CpuDevice::Allocate(std::string_view label, int64_t size_bytes) {
  return CpuArena::Create(label, size_bytes);
}

absl::StatusOr<std::unique_ptr<Stream>> CpuDevice::CreateStream() { return std::make_unique<CpuStream>(); }

absl::Status CpuDevice::Copy(Stream& /*stream*/, absl::Span<const CopyTask> tasks) {
  absl::StatusOr<TaskChunks> chunks = Cut(tasks);
  if (!chunks.ok()) return chunks.status();
  pool_->ParallelFor(chunks->num_chunks(), [&](int64_t chunk) {
    chunks->ForEachPiece(chunk, [&](size_t task, int64_t first, int64_t num_elements) {
      CopyPiece(*kernels_, tasks[task], first, num_elements);
    });
  });
  return absl::OkStatus();
}

absl::Status CpuDevice::Ema(Stream& /*stream*/, absl::Span<const EmaTask> tasks) {
  absl::StatusOr<TaskChunks> chunks = Cut(tasks);
  if (!chunks.ok()) return chunks.status();
  pool_->ParallelFor(chunks->num_chunks(), [&](int64_t chunk) {
    chunks->ForEachPiece(chunk, [&](size_t task, int64_t first, int64_t num_elements) {
      EmaPiece(*kernels_, tasks[task], first, num_elements);
    });
  });
  return absl::OkStatus();
}

absl::Status CpuDevice::Signal(Stream& /*stream*/, CompletionWord& word, uint64_t value) {
  StoreAndWake(word, value);
  return absl::OkStatus();
}

absl::Status CpuDevice::Synchronize(Stream& /*stream*/) { return absl::OkStatus(); }

}  // namespace holdfast
