#include "common/ignored_names.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace holdfast {
namespace {

google::protobuf::RepeatedPtrField<std::string> Globs(std::initializer_list<const char*> globs) {
  return {globs.begin(), globs.end()};
}

TEST(IgnoredNamesTest, Contains_NamesAndGlobs) {
  const auto globs = Globs({"head.bias", "vae.*", "*.freqs"});
  IgnoredNames ignored(globs);
  for (const std::string name : {"head.bias", "vae.conv", "layers.0.freqs"}) EXPECT_TRUE(*ignored.Contains(name));
  for (const std::string name : {"head.bias2", "head", "a.vae.conv", "freqs"}) EXPECT_FALSE(*ignored.Contains(name));
}

TEST(IgnoredNamesTest, Contains_NoGlobs_NothingIsIgnored) {
  const auto globs = Globs({});
  IgnoredNames ignored(globs);
  EXPECT_FALSE(*ignored.Contains("a"));
}

TEST(IgnoredNamesTest, Contains_MoreStepsThanAllowed_IsRefused) {
  const auto globs = Globs({"*aab*"});
  IgnoredNames ignored(globs, /*max_steps=*/5000);
  const std::string name(1000, 'a');
  EXPECT_FALSE(*ignored.Contains(name));
  const absl::StatusOr<bool> refused = ignored.Contains(name);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("spec.ignored_parameters: finding what they match"));
}

TEST(IgnoredNamesTest, Contains_WholeNames_TakeNoSteps) {
  const auto globs = Globs({"a", "b"});
  IgnoredNames ignored(globs, /*max_steps=*/0);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(*ignored.Contains("c"));
}

TEST(IgnoredNamesTest, Contains_AMillionOrdinaryNames_StayFarBelowTheLimit) {
  const auto globs = Globs({"vision_tower.*", "*.freqs_cis", "layers.*.experts.?.codes", "*lora*"});
  IgnoredNames ignored(globs, IgnoredNames::kMaxSteps / 10);
  for (int layer = 0; layer < 1000; ++layer) {
    for (int expert = 0; expert < 1000; ++expert) {
      const std::string name =
          "layers." + std::to_string(layer) + ".experts." + std::to_string(expert) + ".down_proj.weight";
      ASSERT_EQ(ignored.Contains(name).value(), false);
    }
  }
}

}  // namespace
}  // namespace holdfast
