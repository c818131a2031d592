#include "common/quoted.h"

#include <string>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

std::string Repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST(QuotedTest, ShortText_IsWhole) {
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("layers.0"), "'layers.0'");
  EXPECT_EQ(Quoted(std::string(128, 'x')), "'" + std::string(128, 'x') + "'");
  EXPECT_EQ(Quoted("größe"), "'größe'");
}

TEST(QuotedTest, LongText_IsCutAndCounted) {
  EXPECT_EQ(Quoted(std::string(129, 'x')), "'" + std::string(128, 'x') + "…' (129 bytes)");
  EXPECT_EQ(Shortened(std::string(5000, 'x')), std::string(128, 'x') + "…");
}

TEST(QuotedTest, LongText_IsCutBetweenCharacters) {
  // Characters of 3 bytes: 42 of them are 126 bytes, and the 43rd would end at the 129th.
  EXPECT_EQ(Shortened(Repeat("€", 60)), Repeat("€", 42) + "…");
  EXPECT_EQ(Shortened("x" + Repeat("😀", 40)), "x" + Repeat("😀", 31) + "…");
  // No text at all: cut somewhere, and shown.
  EXPECT_EQ(Shortened(std::string(5000, '\x80')).size(), 124 + std::string("…").size());
}

TEST(QuotedTest, ControlCharacters_AreEscaped) { EXPECT_EQ(Quoted(std::string("a\nb\0", 4)), "'a\\nb\\000'"); }

}  // namespace
}  // namespace holdfast
