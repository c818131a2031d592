#include "client/holdfastctl/table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>

namespace holdfast::ctl {
namespace {

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"NAME", "MESH", "STEP"});
  table.AddRow({"a", "HYBRID 2×4", "7"});
  table.AddRow({"longer", "-", "12345"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(),
            "NAME    MESH        STEP\n"
            "a       HYBRID 2×4  7\n"
            "longer  -           12345\n");
}

TEST(TableTest, NumbersForPeople) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1023), "1023 B");
  EXPECT_EQ(BytesText(1536), "1.50 KiB");
  EXPECT_EQ(BytesText(uint64_t{64} << 20), "64.0 MiB");
  EXPECT_EQ(BytesText(uint64_t{500} << 30), "500 GiB");
  EXPECT_EQ(BytesText(UINT64_MAX), "16.0 EiB");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'234'567), "1.23M");
  EXPECT_EQ(CountText(70'000'000'000), "70.0G");
}

}  // namespace
}  // namespace holdfast::ctl
