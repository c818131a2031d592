#include "tests/common/element/element_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace holdfast::testing {
namespace {

struct Format {
  int total_bits;
  // Leading one included.
  int precision;
  // Of the smallest subnormal: 2^min_quantum.
  int min_quantum;
  // Everything finite is below 2^max_exponent.
  int max_exponent;
};

Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return {16, 8, -133, 128};
    case DType::kFloat16:
      return {16, 11, -24, 16};
    case DType::kFloat32:
      return {32, 24, -149, 128};
    default:
      return {64, 53, -1074, 1024};
  }
}

int QuantumExponent(const Format& format, double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::max(exponent - format.precision, format.min_quantum);
}

uint64_t ReadBits(const Format& format, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(format.total_bits) / 8);
  return bits;
}

}  // namespace

double RoundedTo(DType dtype, double value) {
  if (dtype == DType::kFloat64 || value == 0 || !std::isfinite(value)) return value;
  const Format format = FormatOf(dtype);
  const int quantum = QuantumExponent(format, value);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  if (std::abs(rounded) < std::ldexp(1.0, format.max_exponent)) return std::copysign(rounded, value);
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

double Spacing(DType dtype, double value) {
  const Format format = FormatOf(dtype);
  if (value == 0) return std::ldexp(1.0, format.min_quantum);
  return std::ldexp(1.0, QuantumExponent(format, value));
}

double Decode(DType dtype, const std::byte* element) {
  const Format format = FormatOf(dtype);
  const uint64_t bits = ReadBits(format, element);
  const int mantissa_bits = format.precision - 1;
  const uint64_t mantissa = bits & ((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t exponent_mask = (uint64_t{1} << (format.total_bits - format.precision)) - 1;
  const uint64_t exponent = (bits >> mantissa_bits) & exponent_mask;
  const double sign = (bits >> (format.total_bits - 1)) != 0 ? -1.0 : 1.0;
  if (exponent == exponent_mask) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const uint64_t significand = exponent == 0 ? mantissa : mantissa | (uint64_t{1} << mantissa_bits);
  const int scale = format.min_quantum + static_cast<int>(std::max<uint64_t>(exponent, 1)) - 1;
  return sign * std::ldexp(static_cast<double>(significand), scale);
}

void Encode(DType dtype, double value, std::byte* element) {
  const Format format = FormatOf(dtype);
  const int mantissa_bits = format.precision - 1;
  const uint64_t exponent_mask = (uint64_t{1} << (format.total_bits - format.precision)) - 1;
  uint64_t bits = 0;
  if (!std::isfinite(value)) {
    bits = exponent_mask << mantissa_bits;
    if (std::isnan(value)) bits |= uint64_t{1} << (mantissa_bits - 1);
  } else if (value != 0) {
    const int quantum = QuantumExponent(format, value);
    // A normal number's leading one adds 1 to the exponent field.
    bits = static_cast<uint64_t>(std::ldexp(std::abs(value), -quantum)) +
           (static_cast<uint64_t>(quantum - format.min_quantum) << mantissa_bits);
  }
  if (std::signbit(value)) bits |= uint64_t{1} << (format.total_bits - 1);
  std::memcpy(element, &bits, static_cast<size_t>(format.total_bits) / 8);
}

std::vector<double> DecodeAll(DType dtype, const std::vector<std::byte>& bytes) {
  const size_t size = static_cast<size_t>(SizeOf(dtype));
  std::vector<double> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) values[i] = Decode(dtype, bytes.data() + i * size);
  return values;
}

std::vector<std::byte> EncodeAll(DType dtype, const std::vector<double>& values) {
  const size_t size = static_cast<size_t>(SizeOf(dtype));
  std::vector<std::byte> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) Encode(dtype, values[i], bytes.data() + i * size);
  return bytes;
}

const std::vector<DType>& ArithmeticDTypes() {
  static const auto& dtypes =
      *new std::vector<DType>{DType::kFloat32, DType::kBFloat16, DType::kFloat16, DType::kFloat64};
  return dtypes;
}

const std::vector<DType>& OpaqueDTypes() {
  static const auto& dtypes =
      *new std::vector<DType>{DType::kFloat8E4M3FN, DType::kFloat8E5M2, DType::kInt64, DType::kInt32,
                              DType::kInt16,        DType::kInt8,       DType::kUInt8, DType::kBool};
  return dtypes;
}

std::vector<double> RandomValues(DType dtype, int64_t count, uint64_t seed, int exponent) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> mantissa(-1.0, 1.0);
  std::uniform_int_distribution<int> usual(exponent - 16, exponent);
  std::uniform_int_distribution<int> kind(0, 19);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) {
    value = std::ldexp(mantissa(random), usual(random));
    const int drawn = kind(random);
    if (drawn == 0) value = 0;
    if (drawn == 1) value = std::ldexp(mantissa(random), FormatOf(dtype).min_quantum + 3);
    value = RoundedTo(dtype, value);
  }
  return values;
}

std::vector<double> RandomIntegers(int64_t count, uint64_t seed, int limit) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> number(-limit, limit);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = number(random);
  return values;
}

}  // namespace holdfast::testing
