// Elements of every arithmetic dtype, read, rounded and written by the definition of their formats in double
// arithmetic: what the element functions are tested against, and share nothing with.
#ifndef HOLDFAST_TESTS_COMMON_ELEMENT_ELEMENT_REFERENCE_H_
#define HOLDFAST_TESTS_COMMON_ELEMENT_ELEMENT_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/dtype.h"

namespace holdfast::testing {

// `value` rounded to the nearest that `dtype` holds, ties to even; infinite beyond the largest.
double RoundedTo(DType dtype, double value);

// The distance between the neighbours of `value` in `dtype`, at most.
double Spacing(DType dtype, double value);

double Decode(DType dtype, const std::byte* element);
// `value` is one that `dtype` holds.
void Encode(DType dtype, double value, std::byte* element);

std::vector<double> DecodeAll(DType dtype, const std::vector<std::byte>& bytes);
std::vector<std::byte> EncodeAll(DType dtype, const std::vector<double>& values);

// float32, bfloat16, float16, float64.
const std::vector<DType>& ArithmeticDTypes();
// All that are not.
const std::vector<DType>& OpaqueDTypes();

// Values that `dtype` holds, drawn by `seed`: of all sizes within ±2^`exponent`, with zeros and subnormals among them.
std::vector<double> RandomValues(DType dtype, int64_t count, uint64_t seed, int exponent = 8);
// Whole numbers within ±`limit`.
std::vector<double> RandomIntegers(int64_t count, uint64_t seed, int limit);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTS_COMMON_ELEMENT_ELEMENT_REFERENCE_H_
