#include "common/shard_ranges.h"

#include <random>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

TEST(ShardRangesTest, InOneShard) {
  const std::vector<ShardRange> ranges = ShardRangesOf({.num_elements = 3, .offset = 9}, 8);
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].shard, 1);
  EXPECT_EQ(ranges[0].shard_begin, 1);
  EXPECT_EQ(ranges[0].parameter_begin, 0);
  EXPECT_EQ(ranges[0].num_elements, 3);
}

TEST(ShardRangesTest, LargerThanAShard) {
  // Elements 5 to 21 of a flat parameter in shards of 8: 3 in the first, all 8 of the second, 6 in the third.
  const std::vector<ShardRange> ranges = ShardRangesOf({.num_elements = 17, .offset = 5}, 8);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].num_elements, 3);
  EXPECT_EQ(ranges[1].num_elements, 8);
  EXPECT_EQ(ranges[1].shard_begin, 0);
  EXPECT_EQ(ranges[1].parameter_begin, 3);
  EXPECT_EQ(ranges[2].shard, 2);
  EXPECT_EQ(ranges[2].num_elements, 6);
}

TEST(ShardRangesTest, NoElements_NoRange) {
  EXPECT_TRUE(ShardRangesOf({.num_elements = 0, .offset = 8}, 8).empty());
  // All of the flat parameter is empty, and so are its shards.
  EXPECT_TRUE(ShardRangesOf({.num_elements = 0, .offset = 0}, 0).empty());
}

// Against the definition: element e of the flat parameter is element e % shard_elements of shard e / shard_elements.
TEST(ShardRangesTest, RandomPlaces_EveryElementOnceAndInOrder) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 5000; ++i) {
    const auto shard_elements = static_cast<int64_t>(random() % 12 + 1);
    const ParameterLayout parameter = {.num_elements = static_cast<int64_t>(random() % 50),
                                       .offset = static_cast<int64_t>(random() % 50)};
    int64_t element = 0;
    int32_t last_shard = -1;
    for (const ShardRange& range : ShardRangesOf(parameter, shard_elements)) {
      // Neighbours are one range.
      EXPECT_GT(range.shard, last_shard);
      last_shard = range.shard;
      EXPECT_GT(range.num_elements, 0);
      for (int64_t k = 0; k < range.num_elements; ++k, ++element) {
        ASSERT_EQ(range.parameter_begin + k, element);
        ASSERT_EQ(range.shard, (parameter.offset + element) / shard_elements);
        ASSERT_EQ(range.shard_begin + k, (parameter.offset + element) % shard_elements);
      }
    }
    ASSERT_EQ(element, parameter.num_elements);
  }
}

}  // namespace
}  // namespace holdfast
