#include "client/tensor_view.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace holdfast {

c10::ScalarType ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kInt64:
      return at::kLong;
    case DType::kInt32:
      return at::kInt;
    case DType::kInt16:
      return at::kShort;
    case DType::kInt8:
      return at::kChar;
    case DType::kBool:
      return at::kBool;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kUInt8:
    case DType::kUnspecified:
      return at::kByte;
  }
  return at::kByte;
}

at::Tensor ViewOf(std::shared_ptr<const MappedMemory> memory, const std::byte* data, DType dtype,
                  const std::vector<int64_t>& shape) {
  return at::from_blob(
      const_cast<std::byte*>(data), shape, [memory = std::move(memory)](void*) {},
      at::TensorOptions().dtype(ScalarTypeOf(dtype)));
}

absl::StatusOr<at::Tensor> NewTensor(DType dtype, const std::vector<int64_t>& shape) {
  try {
    return at::empty(shape, at::TensorOptions().dtype(ScalarTypeOf(dtype)));
  } catch (const std::exception&) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a tensor of shape [", absl::StrJoin(shape, ", "),
                                                     "] and dtype ", std::string(Name(dtype))));
  }
}

absl::StatusOr<at::Tensor> FlattenTensor(const at::Tensor& tensor) {
  try {
    return tensor.detach().reshape({-1});
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("LibTorch cannot flatten the tensor: ", error.what()));
  }
}

absl::Status CopyTensor(const at::Tensor& dst, const at::Tensor& src) {
  const at::NoGradGuard no_grad;
  try {
    dst.copy_(src);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("LibTorch cannot copy the tensor: ", error.what()));
  }
}

}  // namespace holdfast
