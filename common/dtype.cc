#include "common/dtype.h"

#include <array>

namespace holdfast {
namespace {

struct Traits {
  std::string_view name;
  int64_t size_bytes;
};

constexpr std::array<Traits, 13> kTraits = {{
    {"unspecified", 0},
    {"float32", 4},
    {"bfloat16", 2},
    {"float16", 2},
    {"float64", 8},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"int64", 8},
    {"int32", 4},
    {"int16", 2},
    {"int8", 1},
    {"uint8", 1},
    {"bool", 1},
}};

}  // namespace

DType FromProto(v1::DataType dtype) {
  const int value = static_cast<int>(dtype);
  if (value < 0 || value >= static_cast<int>(kTraits.size())) return DType::kUnspecified;
  return static_cast<DType>(value);
}

v1::DataType ToProto(DType dtype) { return static_cast<v1::DataType>(dtype); }

int64_t SizeOf(DType dtype) { return kTraits[static_cast<size_t>(dtype)].size_bytes; }

std::string_view Name(DType dtype) { return kTraits[static_cast<size_t>(dtype)].name; }

bool IsArithmetic(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kBFloat16 || dtype == DType::kFloat16 || dtype == DType::kFloat64;
}

}  // namespace holdfast
