#include "server/device/cpu/available_memory.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

class AvailableMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ("available_memory_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(root_ / "system.slice/holdfast.service");
    sources_.meminfo = root_ / "meminfo";
    sources_.self_cgroup = root_ / "cgroup";
    sources_.cgroup_root = root_;
    Write("meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    8192 kB\nSwapTotal: 0 kB\n");
    Write("cgroup", "0::/system.slice/holdfast.service\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) { std::ofstream(root_ / path) << text; }
  void WriteGroup(const std::string& group, const std::string& max, const std::string& current) {
    Write(group + "/memory.max", max);
    Write(group + "/memory.current", current);
  }

  std::filesystem::path root_;
  MemorySources sources_;
};

TEST_F(AvailableMemoryTest, WithoutGroups_IsMemAvailable) {
  EXPECT_EQ(AvailableMemoryBytes(sources_), int64_t{8192} * 1024);
}

TEST_F(AvailableMemoryTest, UnlimitedGroup_DoesNotCount) {
  WriteGroup("system.slice/holdfast.service", "max\n", "1000\n");
  EXPECT_EQ(AvailableMemoryBytes(sources_), int64_t{8192} * 1024);
}

TEST_F(AvailableMemoryTest, OwnGroupsLimit_CountsWithoutCachedPages) {
  WriteGroup("system.slice/holdfast.service", "1000000\n", "700000\n");
  Write("system.slice/holdfast.service/memory.stat", "anon 5\ninactive_file 100000\nactive_file 3\n");
  EXPECT_EQ(AvailableMemoryBytes(sources_), 400000);
}

TEST_F(AvailableMemoryTest, ParentsLimit_CountsToo) {
  WriteGroup("system.slice/holdfast.service", "1000000\n", "700000\n");
  WriteGroup("system.slice", "1000000\n", "950000\n");
  EXPECT_EQ(AvailableMemoryBytes(sources_), 50000);
}

TEST_F(AvailableMemoryTest, GroupOverItsLimit_LeavesNothing) {
  WriteGroup("system.slice/holdfast.service", "1000\n", "2000\n");
  EXPECT_EQ(AvailableMemoryBytes(sources_), 0);
}

TEST_F(AvailableMemoryTest, NamespaceRoot_IsReadInAContainer) {
  Write("cgroup", "0::/\n");
  WriteGroup(".", "5000\n", "1000\n");
  EXPECT_EQ(AvailableMemoryBytes(sources_), 4000);
}

TEST_F(AvailableMemoryTest, NothingReadable_IsNothing) {
  EXPECT_EQ(AvailableMemoryBytes({"/nonexistent", "/nonexistent", "/nonexistent"}), 0);
}

TEST(AvailableMemoryOfThisMachineTest, IsThere) { EXPECT_GT(AvailableMemoryBytes(), 0); }

}  // namespace
}  // namespace holdfast
