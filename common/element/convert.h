// Between the arithmetic element types and the type that is computed in.
#ifndef HOLDFAST_COMMON_ELEMENT_CONVERT_H_
#define HOLDFAST_COMMON_ELEMENT_CONVERT_H_

#include <type_traits>

#include "common/element/bfloat16.h"
#include "common/element/float16.h"
#include "common/element/host_device.h"

namespace holdfast::element {

// What elements of these types are computed in: double where one of them is double, float otherwise.
template <typename... T>
using Compute = std::conditional_t<(std::is_same_v<T, double> || ...), double, float>;

// Exact.
HOLDFAST_ELEMENT float Widen(BFloat16 value) { return FromBFloat16(value); }
HOLDFAST_ELEMENT float Widen(Float16 value) { return FromFloat16(value); }
HOLDFAST_ELEMENT float Widen(float value) { return value; }
HOLDFAST_ELEMENT double Widen(double value) { return value; }

// To the nearest, ties to even. A double becomes bfloat16 or float16 by way of float, as in PyTorch.
template <typename To, typename From>
HOLDFAST_ELEMENT To Narrow(From value) {
  if constexpr (std::is_same_v<To, BFloat16>) {
    return ToBFloat16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Float16>) {
    return ToFloat16(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
HOLDFAST_ELEMENT To Convert(From value) {
  return Narrow<To>(Widen(value));
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_CONVERT_H_
