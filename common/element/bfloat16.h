// bfloat16: the upper half of a float32.
#ifndef HOLDFAST_COMMON_ELEMENT_BFLOAT16_H_
#define HOLDFAST_COMMON_ELEMENT_BFLOAT16_H_

#include <cstdint>

#include "common/element/host_device.h"

namespace holdfast::element {

struct BFloat16 {
  uint16_t bits;
};

// Exact.
HOLDFAST_ELEMENT float FromBFloat16(BFloat16 value) { return BitCast<float>(static_cast<uint32_t>(value.bits) << 16); }

// To the nearest, ties to even. A NaN keeps its sign and the upper bits of its payload, and is quiet.
HOLDFAST_ELEMENT BFloat16 ToBFloat16(float value) {
  const uint32_t bits = BitCast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40u;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return BFloat16{static_cast<uint16_t>(is_nan ? quiet_nan : rounded)};
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_BFLOAT16_H_
