// at::Tensor over memory that is not LibTorch's own.
#ifndef HOLDFAST_CLIENT_TENSOR_VIEW_H_
#define HOLDFAST_CLIENT_TENSOR_VIEW_H_

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/mapped_memory.h"
#include "common/dtype.h"

namespace holdfast {

// fp8 becomes kByte: LibTorch 1.13 has no such types. `dtype` is not kUnspecified.
c10::ScalarType ScalarTypeOf(DType dtype);

// A contiguous CPU tensor over `data`, an address in `memory`; it shares the ownership of the memory. Of memory that is
// mapped for reading only it must not be written.
at::Tensor ViewOf(std::shared_ptr<const MappedMemory> memory, const std::byte* data, DType dtype,
                  const std::vector<int64_t>& shape);

// A new, uninitialised, contiguous CPU tensor. RESOURCE_EXHAUSTED: there is no memory for it.
absl::StatusOr<at::Tensor> NewTensor(DType dtype, const std::vector<int64_t>& shape);

// All elements of a tensor in one dimension, outside of autograd; a view if it is contiguous. Errors as CopyTensor.
absl::StatusOr<at::Tensor> FlattenTensor(const at::Tensor& tensor);

// dst.copy_(src), outside of autograd; INVALID_ARGUMENT with what LibTorch says if it refuses (a sparse tensor, say).
absl::Status CopyTensor(const at::Tensor& dst, const at::Tensor& src);

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_TENSOR_VIEW_H_
