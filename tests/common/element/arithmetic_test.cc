#include <cmath>

#include "common/element/ema.h"
#include "common/element/reduce.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

using element::BFloat16;

TEST(EmaTest, OfAConstantParameter_SettlesAtIt) {
  const auto factors = element::MakeEmaFactors<float>(0.999);
  float average = 0;
  for (int step = 0; step < 20'000; ++step) average = element::Ema(average, 3.0f, factors);
  // What is left of the start, e^-20, is below the roundings that a thousand steps gather.
  EXPECT_NEAR(average, 3.0f, 3e-4f);
}

TEST(EmaTest, FactorsOfAUsualDecay_AddUpToOne) {
  for (const double decay : {0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999}) {
    const auto factors = element::MakeEmaFactors<float>(decay);
    EXPECT_EQ(static_cast<double>(factors.decay) + static_cast<double>(factors.complement), 1.0) << decay;
    EXPECT_FLOAT_EQ(factors.decay, static_cast<float>(decay));
  }
}

TEST(EmaTest, AtDecayZeroAndOne_TakesOneSide) {
  EXPECT_EQ(element::Ema(5.0, 7.0, element::MakeEmaFactors<double>(0)), 7.0);
  EXPECT_EQ(element::Ema(5.0, 7.0, element::MakeEmaFactors<double>(1)), 5.0);
}

TEST(ReduceTest, Accumulate_RoundsOnce) {
  // In bfloat16 the spacing at 256 is 2: 256 + 1 is a tie, which goes to the even 256.
  const BFloat16 large = element::Narrow<BFloat16>(256.0f);
  const BFloat16 one = element::Narrow<BFloat16>(1.0f);
  const BFloat16 three = element::Narrow<BFloat16>(3.0f);
  EXPECT_EQ(element::Widen(element::Accumulate(large, one)), 256.0f);
  EXPECT_EQ(element::Widen(element::Accumulate(large, three)), 260.0f);
  EXPECT_EQ(element::Accumulate(0.25f, 0.5f), 0.75f);
}

TEST(ReduceTest, RoundedTo_IsWhatTheTypeWouldHold) {
  EXPECT_EQ(element::RoundedTo<BFloat16>(257.0f), 256.0f);
  EXPECT_EQ(element::RoundedTo<element::Float16>(70000.0f), INFINITY);
  EXPECT_EQ(element::RoundedTo<float>(257.0f), 257.0f);
}

}  // namespace
}  // namespace holdfast
