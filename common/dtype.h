// The element types of tensors, and what can be done with them.
#ifndef HOLDFAST_COMMON_DTYPE_H_
#define HOLDFAST_COMMON_DTYPE_H_

#include <cstdint>
#include <string_view>

#include "holdfast/v1/model.pb.h"

namespace holdfast {

// Values are those of holdfast.v1.DataType.
enum class DType : uint8_t {
  kUnspecified = 0,
  kFloat32 = 1,
  kBFloat16 = 2,
  kFloat16 = 3,
  kFloat64 = 4,
  kFloat8E4M3FN = 5,
  kFloat8E5M2 = 6,
  kInt64 = 7,
  kInt32 = 8,
  kInt16 = 9,
  kInt8 = 10,
  kUInt8 = 11,
  kBool = 12,
};

// A value outside the enum becomes kUnspecified.
DType FromProto(v1::DataType dtype);
v1::DataType ToProto(DType dtype);

// Bytes of one element; 0 for kUnspecified.
int64_t SizeOf(DType dtype);

// As PyTorch spells it: "bfloat16".
std::string_view Name(DType dtype);

// Can be converted, reduced and averaged: float32, bfloat16, float16, float64. All others are carried as bytes.
bool IsArithmetic(DType dtype);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_DTYPE_H_
