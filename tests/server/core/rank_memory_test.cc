#include "server/core/rank_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/core/model_fixture.h"

namespace holdfast {
namespace {

class RankMemoryTest : public ::testing::Test {
 protected:
  static std::unique_ptr<RankMemory> Create(const ModelLayout& layout, Device& device) {
    absl::StatusOr<std::unique_ptr<RankMemory>> memory = RankMemory::Create(layout, Rank(1), device);
    EXPECT_THAT(memory, IsOk());
    return *std::move(memory);
  }

  const ModelLayout layout_ = *ModelLayout::Create(SmallModel({.num_replicate = 1, .num_shard = 2}), 2);
  const std::unique_ptr<WorkerPool> pool_ = *WorkerPool::Create(1);
  const std::unique_ptr<CpuDevice> device_ = *CpuDevice::Create(pool_.get());
  const std::unique_ptr<RankMemory> memory_ = Create(layout_, *device_);
};

TEST_F(RankMemoryTest, ExportsEveryArenaButTheUndoCopyWithTheRightsOfAWorker) {
  std::vector<v1::MemoryPurpose> writable, read_only;
  const std::vector<ExportedArena> exported = memory_->Exported();
  for (const ExportedArena& arena : exported) {
    (arena.writable ? writable : read_only).push_back(arena.purpose);
    EXPECT_EQ(arena.size_bytes, layout_.ArenaBytes(arena.purpose));
  }
  EXPECT_THAT(writable, ::testing::UnorderedElementsAre(v1::MEMORY_PURPOSE_PARAMETERS, v1::MEMORY_PURPOSE_GRADIENTS,
                                                        v1::MEMORY_PURPOSE_OPTIMIZER_STATE, v1::MEMORY_PURPOSE_BUFFERS,
                                                        v1::MEMORY_PURPOSE_GRADIENT_SLOTS));
  EXPECT_THAT(read_only, ::testing::UnorderedElementsAre(v1::MEMORY_PURPOSE_EMA, v1::MEMORY_PURPOSE_GATHER_SLOTS));

  const absl::StatusOr<std::vector<UniqueFd>> descriptors = memory_->Descriptors();
  ASSERT_THAT(descriptors, IsOk());
  ASSERT_EQ(descriptors->size(), exported.size());
  for (size_t i = 0; i < exported.size(); ++i) {
    struct stat file {};
    ASSERT_EQ(::fstat((*descriptors)[i].get(), &file), 0);
    EXPECT_EQ(file.st_size, exported[i].size_bytes);
    void* mapping = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, (*descriptors)[i].get(), 0);
    EXPECT_EQ(mapping != MAP_FAILED, exported[i].writable) << v1::MemoryPurpose_Name(exported[i].purpose);
    if (mapping != MAP_FAILED) ::munmap(mapping, kPageBytes);
  }
}

TEST_F(RankMemoryTest, HeadersSayWhatTheMemoryIs) {
  const absl::StatusOr<std::vector<UniqueFd>> descriptors = memory_->Descriptors();
  ASSERT_THAT(descriptors, IsOk());
  memory_->PublishPosition(Epoch(3), Step(7), /*initialized=*/true, /*torn=*/false);
  for (size_t i = 0; i < descriptors->size(); ++i) {
    const ExportedArena arena = memory_->Exported()[i];
    void* mapping = ::mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, (*descriptors)[i].get(), 0);
    ASSERT_NE(mapping, MAP_FAILED);
    const auto& header = *static_cast<const ArenaHeader*>(mapping);
    EXPECT_EQ(header.magic, kArenaMagic);
    EXPECT_EQ(header.version, kArenaVersion);
    EXPECT_EQ(header.purpose, static_cast<uint32_t>(arena.purpose));
    EXPECT_EQ(header.fingerprint, layout_.fingerprint());
    EXPECT_EQ(header.size_bytes, static_cast<uint64_t>(arena.size_bytes));
    EXPECT_EQ(header.rank, 1);
    EXPECT_EQ(header.num_words, arena.purpose == v1::MEMORY_PURPOSE_GATHER_SLOTS     ? 3u
                                : arena.purpose == v1::MEMORY_PURPOSE_GRADIENT_SLOTS ? 2u
                                                                                     : 0u);
    EXPECT_EQ(header.epoch, 3u);
    EXPECT_EQ(header.step, 7u);
    EXPECT_EQ(header.initialized, 1u);
    EXPECT_EQ(header.torn, 0u);
    ::munmap(mapping, kPageBytes);
  }
}

TEST_F(RankMemoryTest, UndoBringsBackShardsStatesAndBuffersByteForByte) {
  const std::unique_ptr<Stream> stream = *device_->CreateStream();
  const FlatParameter& flat = layout_.unit(kBlock).flat_parameters[0];
  const BufferLayout& buffer = layout_.unit(kRoot).buffers[0];
  const std::vector<absl::Span<std::byte>> parts = {
      {memory_->Shard(flat), static_cast<size_t>(flat.shard_elements * SizeOf(flat.master_dtype))},
      {memory_->Buffer(buffer), static_cast<size_t>(buffer.num_elements * SizeOf(buffer.dtype))}};
  std::vector<std::vector<std::byte>> before;
  uint8_t next = 1;
  for (const absl::Span<std::byte> part : parts) {
    for (std::byte& byte : part) byte = static_cast<std::byte>(next++);
    before.push_back(BytesOf(part));
  }
  ASSERT_THAT(device_->Copy(*stream, memory_->UndoSave()), IsOk());
  for (const absl::Span<std::byte> part : parts) std::fill(part.begin(), part.end(), std::byte{0xee});

  const std::byte* saved_shard = memory_->UndoOf(v1::MEMORY_PURPOSE_PARAMETERS, memory_->Shard(flat));
  const std::byte* saved_buffer = memory_->UndoOf(v1::MEMORY_PURPOSE_BUFFERS, memory_->Buffer(buffer));
  EXPECT_TRUE(std::equal(before[0].begin(), before[0].end(), saved_shard));
  EXPECT_TRUE(std::equal(before[1].begin(), before[1].end(), saved_buffer));
  ASSERT_THAT(device_->Copy(*stream, memory_->UndoRestore()), IsOk());
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(BytesOf(parts[i]), before[i]);
}

TEST_F(RankMemoryTest, WithoutProtectionThereIsNoUndoCopy) {
  v1::ModelSpec spec = layout_.spec();
  spec.set_update_protection(v1::UPDATE_PROTECTION_NONE);
  const ModelLayout unprotected = *ModelLayout::Create(spec, 2);
  EXPECT_TRUE(memory_->has_undo());
  EXPECT_FALSE(Create(unprotected, *device_)->has_undo());
}

}  // namespace
}  // namespace holdfast
