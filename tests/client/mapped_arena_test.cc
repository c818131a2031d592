#include "client/mapped_arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tests/client/test_arena.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSize = 4 * kPageBytes;

ArenaExpectation Expected() {
  return {.purpose = v1::MEMORY_PURPOSE_GATHER_SLOTS,
          .size_bytes = kSize,
          .writable = true,
          .fingerprint = 0x1234,
          .rank = Rank(2),
          .num_words = 3};
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(MappedArenaTest, Map_ShowsTheSameMemory) {
  const UniqueFd fd = MakeTestArena(Expected());
  auto first = MappedArena::Map(fd, Expected());
  auto second = MappedArena::Map(fd, Expected());
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->header().fingerprint, 0x1234u);
  first->data()[100] = std::byte{9};
  EXPECT_EQ(second->data()[100], std::byte{9});
}

TEST(MappedArenaTest, Map_WrongHeaderIsRefusedAndNamed) {
  const struct {
    std::string field;
    std::function<void(ArenaHeader&)> change;
  } cases[] = {
      {"magic number", [](ArenaHeader& h) { h.magic = 0; }},
      {"format version", [](ArenaHeader& h) { h.version = 99; }},
      {"purpose", [](ArenaHeader& h) { h.purpose = v1::MEMORY_PURPOSE_EMA; }},
      {"fingerprint", [](ArenaHeader& h) { h.fingerprint ^= 1; }},
      {"size", [](ArenaHeader& h) { h.size_bytes += 1; }},
      {"rank", [](ArenaHeader& h) { h.rank = 1; }},
      {"number of completion words", [](ArenaHeader& h) { h.num_words = 257; }},
  };
  for (const auto& test : cases) {
    const auto arena = MappedArena::Map(MakeTestArena(Expected(), kSize, test.change), Expected());
    EXPECT_EQ(arena.status().code(), absl::StatusCode::kInternal) << test.field;
    EXPECT_THAT(Message(arena.status()), HasSubstr("its " + test.field + " is "));
    EXPECT_THAT(Message(arena.status()), HasSubstr("MEMORY_PURPOSE_GATHER_SLOTS of rank 2"));
  }
}

TEST(MappedArenaTest, Map_FileOfAnotherSizeIsRefusedBeforeItIsTouched) {
  for (const int64_t size : {int64_t{0}, kPageBytes, kSize - 1, kSize + kPageBytes}) {
    UniqueFd fd = size < kPageBytes ? UniqueFd(::memfd_create("short", MFD_CLOEXEC)) : MakeTestArena(Expected(), size);
    const auto arena = MappedArena::Map(fd, Expected());
    EXPECT_EQ(arena.status().code(), absl::StatusCode::kInternal) << size;
    EXPECT_THAT(Message(arena.status()), HasSubstr("file's size"));
  }
}

TEST(MappedArenaTest, Map_BadDescriptorIsRefused) { EXPECT_FALSE(MappedArena::Map(UniqueFd(), Expected()).ok()); }

TEST(MappedArenaTest, Retire_KeepsTheAddressesAndLetsTheMemoryGo) {
  const UniqueFd fd = MakeTestArena(Expected());
  auto arena = MappedArena::Map(fd, Expected());
  auto other = MappedArena::Map(fd, Expected());
  ASSERT_TRUE(arena.ok() && other.ok());
  std::byte* const address = arena->data();
  address[0] = std::byte{7};
  ASSERT_TRUE(arena->Retire().ok());
  EXPECT_EQ(arena->data(), address);
  EXPECT_EQ(address[0], std::byte{0});
  address[0] = std::byte{1};
  EXPECT_EQ(other->data()[0], std::byte{7});
}

TEST(MappedArenaTest, Remap_ShowsTheNewMemoryAtTheOldAddress) {
  auto arena = MappedArena::Map(MakeTestArena(Expected()), Expected());
  ASSERT_TRUE(arena.ok());
  std::byte* const address = arena->data();
  const UniqueFd next = MakeTestArena(Expected());
  auto other = MappedArena::Map(next, Expected());
  other->data()[5] = std::byte{55};
  ASSERT_TRUE(arena->Retire().ok());
  ASSERT_TRUE(arena->Remap(next, Expected()).ok());
  EXPECT_EQ(arena->data(), address);
  EXPECT_EQ(address[5], std::byte{55});
}

TEST(MappedArenaTest, Remap_OfWhatDoesNotFitLeavesItRetired) {
  auto arena = MappedArena::Map(MakeTestArena(Expected()), Expected());
  ASSERT_TRUE(arena.ok());
  arena->data()[0] = std::byte{7};
  const UniqueFd wrong = MakeTestArena(Expected(), kSize, [](ArenaHeader& h) { h.rank = 0; });
  EXPECT_EQ(arena->Remap(wrong, Expected()).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(arena->data()[0], std::byte{0});
  ArenaExpectation larger = Expected();
  larger.size_bytes += kPageBytes;
  EXPECT_EQ(arena->Remap(MakeTestArena(larger), larger).code(), absl::StatusCode::kInternal);
}

TEST(MappedArenaTest, ForkedChild_DoesNotHaveTheMapping) {
  auto arena = MappedArena::Map(MakeTestArena(Expected()), Expected());
  ASSERT_TRUE(arena.ok());
  void* const page = arena->data() - kPageBytes;
  const pid_t child = ::fork();
  if (child == 0) {
    // mincore says ENOMEM for addresses that are not mapped.
    unsigned char residency = 0;
    ::_exit(::mincore(page, static_cast<size_t>(kPageBytes), &residency) == -1 && errno == ENOMEM ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child has the arena mapped";
}

TEST(MappedArenaTest, Move_LeavesOneOwner) {
  auto arena = MappedArena::Map(MakeTestArena(Expected()), Expected());
  ASSERT_TRUE(arena.ok());
  MappedArena moved = *std::move(arena);
  EXPECT_TRUE(static_cast<bool>(moved));
  EXPECT_FALSE(static_cast<bool>(*arena));
  moved.data()[0] = std::byte{1};
  EXPECT_EQ(moved.data()[0], std::byte{1});
}

}  // namespace
}  // namespace holdfast
