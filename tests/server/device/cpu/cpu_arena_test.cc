#include "server/device/cpu/cpu_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/layout.h"
#include "gmock/gmock.h"

namespace holdfast {
namespace {

constexpr int64_t kSize = 4 * kPageBytes;

class CpuArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<CpuArena>> arena = CpuArena::Create("test", kSize);
    ASSERT_TRUE(arena.ok()) << arena.status();
    arena_ = *std::move(arena);
  }

  UniqueFd Export(bool writable) {
    absl::StatusOr<UniqueFd> fd = arena_->Export(writable);
    EXPECT_TRUE(fd.ok()) << fd.status();
    return *std::move(fd);
  }

  std::unique_ptr<CpuArena> arena_;
};

TEST_F(CpuArenaTest, Memory_IsTakenAtOnce) {
  const UniqueFd fd = Export(false);
  struct stat status = {};
  ASSERT_EQ(fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_size, kSize);
  EXPECT_GE(status.st_blocks * 512, kSize);
}

TEST_F(CpuArenaTest, Data_BeginsBehindTheHeaderPage) {
  EXPECT_EQ(arena_->data() - reinterpret_cast<std::byte*>(&arena_->header()), kPageBytes);
}

TEST_F(CpuArenaTest, ExportWritable_SharesTheMemory) {
  const UniqueFd fd = Export(true);
  void* const mapping = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  static_cast<std::byte*>(mapping)[kPageBytes] = std::byte{42};
  EXPECT_EQ(arena_->data()[0], std::byte{42});
  munmap(mapping, kSize);
}

TEST_F(CpuArenaTest, ExportReadOnly_CanBeReadAndCannotBeWritten) {
  const UniqueFd fd = Export(false);
  EXPECT_EQ(fcntl(fd.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(pwrite(fd.get(), "x", 1, 0), -1);

  void* const mapping = mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  arena_->data()[5] = std::byte{7};
  EXPECT_EQ(static_cast<std::byte*>(mapping)[kPageBytes + 5], std::byte{7});
  EXPECT_EQ(mprotect(mapping, kSize, PROT_READ | PROT_WRITE), -1);
  munmap(mapping, kSize);
}

TEST_F(CpuArenaTest, ExportReadOnly_CannotBeOpenedAgainForWritingByMode) {
  const UniqueFd fd = Export(false);
  struct stat status = {};
  ASSERT_EQ(fstat(fd.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0400u);
}

TEST_F(CpuArenaTest, Exports_CannotBeResizedOrUnsealed) {
  for (const bool writable : {true, false}) {
    const UniqueFd fd = Export(writable);
    EXPECT_EQ(ftruncate(fd.get(), kSize / 2), -1);
    EXPECT_EQ(ftruncate(fd.get(), kSize * 2), -1);
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
    EXPECT_EQ(fcntl(fd.get(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(CpuArenaTest, Mapping_OutlivesTheArena) {
  const UniqueFd fd = Export(true);
  arena_->data()[0] = std::byte{9};
  arena_ = nullptr;
  void* const mapping = mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  EXPECT_EQ(static_cast<std::byte*>(mapping)[kPageBytes], std::byte{9});
  munmap(mapping, kSize);
}

TEST_F(CpuArenaTest, Label_MayBeLong) { EXPECT_TRUE(CpuArena::Create(std::string(5000, 'x'), kSize).ok()); }

}  // namespace
}  // namespace holdfast
