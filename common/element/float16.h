// float16: IEEE 754 binary16.
#ifndef HOLDFAST_COMMON_ELEMENT_FLOAT16_H_
#define HOLDFAST_COMMON_ELEMENT_FLOAT16_H_

#include <cstdint>

#include "common/element/host_device.h"

namespace holdfast::element {

struct Float16 {
  uint16_t bits;
};

// Both conversions have no branch, so that loops over them are vectorised, and give the bits that x86's VCVTPH2PS and
// VCVTPS2PH give, NaNs included.

// Exact. A NaN becomes quiet and keeps sign and payload.
HOLDFAST_ELEMENT float FromFloat16(Float16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  const uint32_t normal = magnitude + ((127u - 15u) << 23);
  // A subnormal is mantissa · 2^-24: put the mantissa behind a leading one, and take the one off as a float.
  const uint32_t one = 113u << 23;
  const uint32_t subnormal = BitCast<uint32_t>(BitCast<float>(magnitude + one) - BitCast<float>(one));
  const uint32_t infinity = magnitude | 0x7f800000u;
  const uint32_t nan = infinity | 0x00400000u;
  uint32_t bits = magnitude < 0x00800000u ? subnormal : normal;
  bits = magnitude >= 0x0f800000u ? infinity : bits;
  bits = magnitude > 0x0f800000u ? nan : bits;
  return BitCast<float>(bits | sign);
}

// To the nearest, ties to even; what is too large becomes infinite. A NaN keeps its sign and the upper bits of its
// payload, and is quiet.
HOLDFAST_ELEMENT Float16 ToFloat16(float value) {
  const uint32_t all = BitCast<uint32_t>(value);
  const uint32_t sign = (all >> 16) & 0x8000u;
  const uint32_t bits = all & 0x7fffffffu;
  const uint32_t normal = (bits - ((127u - 15u) << 23) + 0xfffu + ((bits >> 13) & 1u)) >> 13;
  // Adding 0.5 to a small number leaves its multiple of 2^-24, rounded by the adder, in the low mantissa bits.
  const uint32_t subnormal = BitCast<uint32_t>(BitCast<float>(bits) + 0.5f) - BitCast<uint32_t>(0.5f);
  const uint32_t nan = 0x7e00u | ((bits >> 13) & 0x3ffu);
  uint32_t result = bits < (113u << 23) ? subnormal : normal;
  result = bits >= (143u << 23) ? 0x7c00u : result;
  result = bits > 0x7f800000u ? nan : result;
  return Float16{static_cast<uint16_t>(result | sign)};
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_FLOAT16_H_
