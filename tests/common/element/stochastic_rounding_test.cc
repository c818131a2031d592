#include "common/element/stochastic_rounding.h"

#include <cmath>
#include <cstdint>
#include <random>

#include "common/element/random_bits.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using element::BFloat16;
using element::BitCast;
using element::FromBFloat16;
using element::RandomBits;
using element::RoundStochastically;

TEST(RandomBitsTest, AreAFunctionOfSeedAndIndex) {
  EXPECT_EQ(RandomBits(uint64_t{7}, uint64_t{123}), RandomBits(uint64_t{7}, uint64_t{123}));
  EXPECT_NE(RandomBits(uint64_t{7}, uint64_t{123}), RandomBits(uint64_t{8}, uint64_t{123}));
  EXPECT_NE(RandomBits(uint64_t{7}, uint64_t{123}), RandomBits(uint64_t{7}, uint64_t{124}));
  // Beyond 2^32 elements the sequence does not begin again.
  EXPECT_NE(RandomBits(uint64_t{7}, uint64_t{123}), RandomBits(uint64_t{7}, uint64_t{123} + (uint64_t{1} << 32)));
}

// Chi-squared over the upper byte: 255 degrees of freedom, mean 255, standard deviation 22.6.
double ChiSquared(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(RandomBitsTest, AreUniform_OverIndicesAndOverSeeds) {
  constexpr int kDraws = 256 * 1024;
  std::vector<int> by_index(256);
  std::vector<int> by_seed(256);
  for (uint64_t i = 0; i < kDraws; ++i) {
    ++by_index[RandomBits(uint64_t{1}, i) >> 24];
    ++by_seed[RandomBits(i, uint64_t{1}) >> 24];
  }
  EXPECT_LT(ChiSquared(by_index, kDraws / 256), 255 + 5 * 22.6);
  EXPECT_LT(ChiSquared(by_seed, kDraws / 256), 255 + 5 * 22.6);
}

TEST(RandomBitsTest, OfFollowingIndicesAndSeeds_AreUncorrelated) {
  constexpr int kDraws = 100'000;
  double by_index = 0;
  double by_seed = 0;
  const auto centred = [](uint64_t seed, uint64_t index) { return RandomBits(seed, index) / 4294967296.0 - 0.5; };
  for (uint64_t i = 0; i < kDraws; ++i) {
    by_index += centred(3, i) * centred(3, i + 1);
    by_seed += centred(i, 3) * centred(i + 1, 3);
  }
  // A product of two independent draws has standard deviation 1/12.
  const double limit = 5 * std::sqrt(kDraws) / 12;
  EXPECT_LT(std::abs(by_index), limit);
  EXPECT_LT(std::abs(by_seed), limit);
}

TEST(RoundStochasticallyTest, ExactValues_AreUnchangedByAnyBits) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const float value = FromBFloat16(BFloat16{static_cast<uint16_t>(bits)});
    for (const uint32_t random : {0u, 0x80000000u, 0xffffffffu}) {
      const uint16_t rounded = RoundStochastically(value, random).bits;
      if (std::isnan(value)) {
        ASSERT_EQ(rounded, bits | 0x40u);
      } else {
        ASSERT_EQ(rounded, bits);
      }
    }
  }
}

TEST(RoundStochasticallyTest, AnyFloat_GoesToOneOfItsNeighbours) {
  std::mt19937 random(5);
  for (int i = 0; i < 1'000'000; ++i) {
    const float value = BitCast<float>(static_cast<uint32_t>(random()));
    const float rounded = FromBFloat16(RoundStochastically(value, static_cast<uint32_t>(random())));
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(rounded));
      continue;
    }
    ASSERT_EQ(std::signbit(rounded), std::signbit(value));
    const uint32_t below = BitCast<uint32_t>(value) & 0xffff0000u;
    const float low = BitCast<float>(below);
    const float high = BitCast<float>(below + 0x10000u);
    ASSERT_TRUE(rounded == low || rounded == high) << value << " became " << rounded;
  }
}

TEST(RoundStochasticallyTest, BeyondTheLargest_StaysFinite) {
  const float largest = FromBFloat16(BFloat16{0x7f7f});
  for (const float value : {std::numeric_limits<float>::max(), std::nextafter(largest, 3.4e38f)}) {
    EXPECT_EQ(FromBFloat16(RoundStochastically(value, 0xffffffffu)), largest);
    EXPECT_EQ(FromBFloat16(RoundStochastically(-value, 0xffffffffu)), -largest);
  }
}

TEST(RoundStochasticallyTest, Mean_IsTheValue) {
  constexpr int kDraws = 400'000;
  // Across a power of two the spacing changes; -0.3 and a subnormal come in, too.
  for (const float value : {1.001f, 1.9999f, -0.3f, 3.14159f, 1e-39f, 255.7f}) {
    double sum = 0;
    for (uint64_t i = 0; i < kDraws; ++i) sum += FromBFloat16(RoundStochastically(value, RandomBits(uint64_t{9}, i)));
    const uint32_t below = BitCast<uint32_t>(value) & 0xffff0000u;
    const double spacing = std::abs(BitCast<float>(below + 0x10000u) - BitCast<float>(below));
    // One draw's standard deviation is at most half the spacing.
    EXPECT_NEAR(sum / kDraws, value, 5 * spacing / 2 / std::sqrt(kDraws)) << value;
  }
}

}  // namespace
}  // namespace holdfast
