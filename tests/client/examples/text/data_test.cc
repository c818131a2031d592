#include "client/examples/text/data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

namespace text {
namespace {

std::string Decode(const TextData& data, const at::Tensor& characters) {
  std::string text;
  for (int64_t i = 0; i < characters.numel(); ++i) {
    text += data.vocabulary()[static_cast<size_t>(characters[i].item<int64_t>())];
  }
  return text;
}

TEST(TextDataTest, Encode_AndBack_IsTheText) {
  const auto data = TextData::FromString("hello, world\n");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->vocabulary(), "\n ,dehlorw");
  EXPECT_EQ(data->num_characters(), 13);
  EXPECT_EQ(Decode(*data, data->Encode("held low")), "held low");
  EXPECT_EQ(Decode(*data, data->Encode("hXeYl")), "hel");
}

TEST(TextDataTest, Draw_TargetsAreTheNextCharacters_AllFromTheText) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 26);
  const auto data = TextData::FromString(text);
  ASSERT_TRUE(data.ok());
  const Batch batch = data->Draw(1, 2, 3, 6, 20);
  ASSERT_EQ(batch.inputs.sizes().vec(), (std::vector<int64_t>{6, 20}));
  ASSERT_EQ(batch.targets.sizes().vec(), (std::vector<int64_t>{6, 20}));
  EXPECT_TRUE(at::equal(batch.inputs.slice(1, 1), batch.targets.slice(1, 0, 19)));
  for (int64_t i = 0; i < 6; ++i) {
    const std::string piece = Decode(*data, batch.inputs[i]) + Decode(*data, batch.targets[i]).back();
    EXPECT_NE(text.find(piece), std::string::npos);
  }
}

TEST(TextDataTest, Draw_DependsOnSeedStepAndRankOnly) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 26);
  const auto data = TextData::FromString(text);
  ASSERT_TRUE(data.ok());
  const at::Tensor drawn = data->Draw(1, 2, 3, 4, 30).inputs;
  EXPECT_TRUE(at::equal(drawn, data->Draw(1, 2, 3, 4, 30).inputs));
  EXPECT_FALSE(at::equal(drawn, data->Draw(2, 2, 3, 4, 30).inputs));
  EXPECT_FALSE(at::equal(drawn, data->Draw(1, 3, 3, 4, 30).inputs));
  EXPECT_FALSE(at::equal(drawn, data->Draw(1, 2, 2, 4, 30).inputs));
  EXPECT_FALSE(at::equal(drawn, data->Draw(uint64_t{1} << 32, 2, 3, 4, 30).inputs));
}

TEST(TextDataTest, Load_NoSuchFile_IsNamed) {
  const auto data = TextData::Load("/nowhere/at all");
  EXPECT_EQ(data.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(data.status().message().find("/nowhere/at all"), std::string::npos);
}

TEST(TextDataTest, FromString_OneCharacter_IsRefused) {
  EXPECT_EQ(TextData::FromString("aaaa").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TextData::FromString("").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace text
