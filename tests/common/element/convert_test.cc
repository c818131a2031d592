#include "common/element/convert.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "tests/common/element/element_reference.h"

namespace holdfast {
namespace {

using element::BFloat16;
using element::BitCast;
using element::Float16;

double Reference(DType dtype, uint16_t bits) { return testing::Decode(dtype, reinterpret_cast<std::byte*>(&bits)); }

template <typename T>
struct NarrowType;
template <>
struct NarrowType<BFloat16> {
  static constexpr DType kDType = DType::kBFloat16;
};
template <>
struct NarrowType<Float16> {
  static constexpr DType kDType = DType::kFloat16;
};

template <typename T>
class NarrowTypeTest : public ::testing::Test {
 protected:
  static constexpr DType kDType = NarrowType<T>::kDType;

  static void ExpectRounded(float value) {
    const uint16_t bits = element::Narrow<T>(value).bits;
    const double expected = testing::RoundedTo(kDType, value);
    ASSERT_EQ(Reference(kDType, bits), expected) << "of " << value << " (" << std::hexfloat << value << ")";
    ASSERT_EQ((bits & 0x8000u) != 0, std::signbit(value)) << value;
  }
};

using NarrowTypes = ::testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(NarrowTypeTest, NarrowTypes);

TYPED_TEST(NarrowTypeTest, Widen_EveryBitPattern_IsExact) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const TypeParam value{static_cast<uint16_t>(bits)};
    const double expected = Reference(this->kDType, value.bits);
    const float widened = element::Widen(value);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(widened), expected) << bits;
    }
    ASSERT_EQ(std::signbit(widened), (bits & 0x8000u) != 0) << bits;
  }
}

TYPED_TEST(NarrowTypeTest, Narrow_OfWidened_GivesTheBitsBack) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const TypeParam value{static_cast<uint16_t>(bits)};
    const float widened = element::Widen(value);
    const uint16_t narrowed = element::Narrow<TypeParam>(widened).bits;
    if (std::isnan(widened)) {
      // Only the quiet bit may have changed.
      ASSERT_TRUE(std::isnan(Reference(this->kDType, narrowed))) << bits;
      ASSERT_EQ(narrowed & bits, bits);
    } else {
      ASSERT_EQ(narrowed, bits);
    }
  }
}

TYPED_TEST(NarrowTypeTest, Narrow_BetweenEveryTwoNeighbours_GoesToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7fffu; ++bits) {
    const double low = Reference(this->kDType, static_cast<uint16_t>(bits));
    const double high = Reference(this->kDType, static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(low) || std::isnan(high)) continue;
    // Beyond the largest: the number that would come next.
    const double next = std::isfinite(high) ? high : low + testing::Spacing(this->kDType, low);
    const float middle = static_cast<float>(low / 2 + next / 2);
    for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e38f)}) {
      this->ExpectRounded(value);
      this->ExpectRounded(-value);
    }
  }
}

TYPED_TEST(NarrowTypeTest, Narrow_OfRandomFloats_MatchesTheReference) {
  std::mt19937 random(17);
  for (int i = 0; i < 1'000'000; ++i) {
    const float value = BitCast<float>(static_cast<uint32_t>(random()));
    if (!std::isnan(value)) this->ExpectRounded(value);
  }
}

TYPED_TEST(NarrowTypeTest, Narrow_OfNans_StaysNan) {
  // The payload in the lowest bits only would be cut off, and leave an infinity.
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fc00000u, 0x7fffffffu, 0xffffffffu, 0x7fbfffffu}) {
    const uint16_t narrowed = element::Narrow<TypeParam>(BitCast<float>(bits)).bits;
    EXPECT_TRUE(std::isnan(Reference(this->kDType, narrowed))) << std::hex << bits;
    EXPECT_EQ((narrowed & 0x8000u) != 0, (bits >> 31) != 0) << std::hex << bits;
  }
}

TYPED_TEST(NarrowTypeTest, Narrow_OfInfinitiesAndZeros_KeepsThem) {
  for (const float value : {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()}) {
    this->ExpectRounded(value);
  }
}

TEST(ConvertTest, DoubleToFloat_RoundsToNearestEven) {
  EXPECT_EQ(element::Convert<float>(1.0 + std::ldexp(1.0, -24)), 1.0f);
  EXPECT_EQ(element::Convert<float>(1.0 + std::ldexp(3.0, -24)), 1.0f + std::ldexp(4.0f, -24));
  EXPECT_EQ(element::Convert<double>(0.1f), static_cast<double>(0.1f));
}

TEST(ConvertTest, Compute_IsDoubleOnlyWithDouble) {
  static_assert(std::is_same_v<element::Compute<float, BFloat16>, float>);
  static_assert(std::is_same_v<element::Compute<Float16>, float>);
  static_assert(std::is_same_v<element::Compute<double, BFloat16>, double>);
}

}  // namespace
}  // namespace holdfast
