#include "common/glob.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

// Straight from the definition; exponential, so only for short texts.
bool Reference(std::string_view text, std::string_view glob) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*') {
    return Reference(text, glob.substr(1)) || (!text.empty() && Reference(text.substr(1), glob));
  }
  return !text.empty() && (glob[0] == '?' || glob[0] == text[0]) && Reference(text.substr(1), glob.substr(1));
}

TEST(GlobTest, MatchesGlob_Examples) {
  EXPECT_TRUE(MatchesGlob("layers.0.weight", "layers.*.weight"));
  EXPECT_TRUE(MatchesGlob("layers..weight", "layers.*.weight"));
  EXPECT_TRUE(MatchesGlob("layers.10.mlp.weight", "layers.*"));
  EXPECT_TRUE(MatchesGlob("layers.1", "layers.?"));
  EXPECT_TRUE(MatchesGlob("a", "*"));
  EXPECT_TRUE(MatchesGlob("", "**"));
  EXPECT_TRUE(MatchesGlob("abcbc", "a*bc"));
  EXPECT_FALSE(MatchesGlob("layers.10", "layers.?"));
  EXPECT_FALSE(MatchesGlob("layers.0.weight", "layers.0"));
  EXPECT_FALSE(MatchesGlob("my.layers.0", "layers.*"));
  EXPECT_FALSE(MatchesGlob("", "?"));
  EXPECT_FALSE(MatchesGlob("aa", "a*aa"));
}

TEST(GlobTest, MatchesGlob_OtherSignsOfPatternsAreThemselves) {
  EXPECT_TRUE(MatchesGlob("a[0]\\", "a[0]\\"));
  EXPECT_FALSE(MatchesGlob("a0", "a[0]"));
  EXPECT_TRUE(MatchesGlob(std::string("a\0b", 3), std::string("a\0?", 3)));
}

TEST(GlobTest, MatchesGlob_RandomShortTexts_AsDefined) {
  std::mt19937_64 random(20261201);
  const auto word = [&](std::string_view letters) {
    std::string text(random() % 9, ' ');
    for (char& c : text) c = letters[random() % letters.size()];
    return text;
  };
  int num_matches = 0;
  for (int i = 0; i < 200000; ++i) {
    const std::string text = word("ab");
    const std::string glob = word("ab?**");
    const bool expected = Reference(text, glob);
    num_matches += expected;
    ASSERT_EQ(MatchesGlob(text, glob), expected) << "text '" << text << "', glob '" << glob << "'";
  }
  EXPECT_GT(num_matches, 10000);
}

TEST(GlobTest, MatchesGlob_WorstCases_TakeNoMoreStepsThanPromised) {
  std::string many_stars;
  for (int i = 0; i < 300; ++i) many_stars += "*a";
  for (const std::string& glob : {"*" + std::string(500, 'a') + "b*", many_stars + "b*", std::string(1000, '*') + "b*",
                                  std::string("*a?a?a?a?b*"), many_stars + "b", std::string(1000, '?') + "*"}) {
    const std::string text(1000, 'a');
    const auto bound = static_cast<int64_t>((text.size() + 1) * (glob.size() + 1));
    int64_t steps_left = bound;
    EXPECT_EQ(MatchesGlob(text, glob, steps_left), glob[0] == '?');
    EXPECT_GE(steps_left, 0) << glob;
    EXPECT_LT(steps_left, bound) << glob;
  }
}

TEST(GlobTest, MatchesGlob_AnotherEnding_IsSeenAtTheFirstStep) {
  int64_t steps_left = 1;
  EXPECT_FALSE(MatchesGlob(std::string(1000, 'a'), "*a*a*a*b", steps_left));
  EXPECT_EQ(steps_left, 0);
}

TEST(GlobTest, IsLiteral_WithoutStarAndQuestionMark) {
  EXPECT_TRUE(IsLiteral("layers.0[1]"));
  EXPECT_FALSE(IsLiteral("layers.*"));
  EXPECT_FALSE(IsLiteral("layers.?"));
}

}  // namespace
}  // namespace holdfast
