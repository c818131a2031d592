// Random bits that are a function of a seed and an index: the same for any order, any number of threads, any device.
#ifndef HOLDFAST_COMMON_ELEMENT_RANDOM_BITS_H_
#define HOLDFAST_COMMON_ELEMENT_RANDOM_BITS_H_

#include <cstdint>

#include "common/element/host_device.h"

namespace holdfast::element {

// One of 2^64 sequences of 2^32 random words.
struct RandomKey {
  uint32_t first;
  uint32_t second;
};

// The key of the indices whose upper half is `index_high`. By the finalizer of SplitMix64 (Steele et al., 2014).
HOLDFAST_ELEMENT RandomKey MakeRandomKey(uint64_t seed, uint32_t index_high) {
  uint64_t z = seed + 0x9e3779b97f4a7c15u * (static_cast<uint64_t>(index_high) + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return RandomKey{static_cast<uint32_t>(z), static_cast<uint32_t>(z >> 32)};
}

// 32-bit multiplications only, which every vector unit has. The mixing constants are those of C. Wellons's lowbias32,
// chosen there for the least bias of any output bit on any input bit.
HOLDFAST_ELEMENT uint32_t RandomBits(RandomKey key, uint32_t index_low) {
  uint32_t x = index_low + key.first;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15) ^ key.second) * 0x846ca68bu;
  return x ^ (x >> 16);
}

HOLDFAST_ELEMENT uint32_t RandomBits(uint64_t seed, uint64_t index) {
  return RandomBits(MakeRandomKey(seed, static_cast<uint32_t>(index >> 32)), static_cast<uint32_t>(index));
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_RANDOM_BITS_H_
