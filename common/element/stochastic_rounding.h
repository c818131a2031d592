// Rounding that is right on average, so that small changes to a bfloat16 number add up instead of being lost.
#ifndef HOLDFAST_COMMON_ELEMENT_STOCHASTIC_ROUNDING_H_
#define HOLDFAST_COMMON_ELEMENT_STOCHASTIC_ROUNDING_H_

#include <cstdint>

#include "common/element/bfloat16.h"
#include "common/element/host_device.h"

namespace holdfast::element {

// One of the two neighbours of `value`, each with the probability that makes the mean `value`; `random` is 32 uniform
// bits. What bfloat16 can hold is unchanged; what is finite stays finite (beyond the largest bfloat16 it becomes that);
// infinities stay, and a NaN keeps its sign and the upper bits of its payload, and is quiet.
HOLDFAST_ELEMENT BFloat16 RoundStochastically(float value, uint32_t random) {
  const uint32_t bits = BitCast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits >> 16) & 0x8000u;
  // The lower half is the fraction of the way to the next neighbour; a carry is the step there.
  const uint32_t rounded = (magnitude + (random >> 16)) >> 16;
  const uint32_t finite = rounded < 0x7f7fu ? rounded : 0x7f7fu;
  const uint32_t quiet_nan = (magnitude >> 16) | 0x40u;
  uint32_t result = magnitude < 0x7f800000u ? finite : 0x7f80u;
  result = magnitude > 0x7f800000u ? quiet_nan : result;
  return BFloat16{static_cast<uint16_t>(result | sign)};
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_STOCHASTIC_ROUNDING_H_
