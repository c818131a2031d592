#include "tests/bench/result.h"

#include "gtest/gtest.h"

namespace holdfast::bench {
namespace {

TEST(ResultTest, Ratio_IsAboveOneForTheBetterValueWhicheverWayTheUnitCounts) {
  EXPECT_DOUBLE_EQ(*Ratio({.peer = "p", .value = 30, .peer_value = 10, .better = Better::kHigher}), 3);
  EXPECT_DOUBLE_EQ(*Ratio({.peer = "p", .value = 10, .peer_value = 30, .better = Better::kLower}), 3);
  EXPECT_FALSE(Ratio({.value = 10}).has_value());
}

TEST(ResultTest, Met_IsOfTheRatioWithAPeerAndOfTheValueWithout) {
  EXPECT_TRUE(*Met({.peer = "p", .value = 20, .peer_value = 60, .better = Better::kLower, .aim = 3.0}));
  EXPECT_FALSE(*Met({.peer = "p", .value = 21, .peer_value = 60, .better = Better::kLower, .aim = 3.0}));
  EXPECT_TRUE(*Met({.value = 140, .better = Better::kLower, .aim = 150.0}));
  EXPECT_FALSE(*Met({.value = 160, .better = Better::kLower, .aim = 150.0}));
  EXPECT_FALSE(*Met({.value = 140, .better = Better::kHigher, .aim = 150.0}));
  EXPECT_FALSE(Met({.value = 140}).has_value());
}

TEST(ResultTest, ToJson_NamesEveryField) {
  EXPECT_EQ(ToJson({"ema", "64M \"fp32\"", "foreach", 2.5, 5, "ms", Better::kLower, 1.55}),
            "{\"suite\": \"ema\", \"case\": \"64M \\\"fp32\\\"\", \"peer\": \"foreach\", \"value\": 2.5, "
            "\"peer_value\": 5, \"unit\": \"ms\", \"ratio\": 2, \"aim\": 1.55, \"met\": true}");
}

TEST(ResultTest, ToJson_IsNullWhereThereIsNone) {
  EXPECT_EQ(ToJson({"rpc", "empty", "", 2.5, 0, "us", Better::kLower, std::nullopt}),
            "{\"suite\": \"rpc\", \"case\": \"empty\", \"peer\": null, \"value\": 2.5, \"peer_value\": null, "
            "\"unit\": \"us\", \"ratio\": null, \"aim\": null, \"met\": null}");
}

TEST(ResultTest, ToRow_StandsUnderItsHeading) {
  const std::string row = ToRow({"ema", "case", "peer", 2.5, 5, "ms", Better::kLower, 1.55});
  EXPECT_EQ(row.find("ms"), RowHeading().find("unit"));
  EXPECT_EQ(row.find("yes"), RowHeading().find("met"));
}

}  // namespace
}  // namespace holdfast::bench
