#include "client/mapped_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/test_rank_memory.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

class MappedMemoryTest : public ::testing::Test {
 protected:
  std::shared_ptr<const ModelLayout> layout_ =
      std::make_shared<const ModelLayout>(*ModelLayout::Create(SmallModelSpec(), 2));
  TestRankMemory daemon_{layout_, Rank(1)};
};

TEST_F(MappedMemoryTest, Map_ShowsEveryArenaWhereTheLayoutSays) {
  auto memory = MappedMemory::Map(layout_, Rank(1), daemon_.Hand(), daemon_.arenas());
  ASSERT_TRUE(memory.ok()) << memory.status();
  const FlatParameter& flat = layout_->units()[1].flat_parameters[0];
  const auto mark = [](std::byte* data, uint8_t value) { *data = std::byte{value}; };
  mark(daemon_.data(v1::MEMORY_PURPOSE_PARAMETERS) + flat.shard_offset, 1);
  mark(daemon_.data(v1::MEMORY_PURPOSE_GRADIENTS) + flat.gradient_offset, 2);
  mark(daemon_.data(v1::MEMORY_PURPOSE_OPTIMIZER_STATE) + flat.state_offsets[0], 3);
  mark(daemon_.data(v1::MEMORY_PURPOSE_EMA) + flat.ema_offsets[0], 4);
  mark(daemon_.data(v1::MEMORY_PURPOSE_BUFFERS) + layout_->units()[1].buffers[0].offset, 5);
  mark(daemon_.data(v1::MEMORY_PURPOSE_GATHER_SLOTS) + 2 * layout_->gather_slot_bytes(), 6);
  mark(daemon_.data(v1::MEMORY_PURPOSE_GRADIENT_SLOTS) + layout_->gradient_slot_bytes(), 7);
  EXPECT_EQ(*(*memory)->Shard(flat), std::byte{1});
  EXPECT_EQ(*(*memory)->Gradient(flat), std::byte{2});
  EXPECT_EQ(*(*memory)->State(flat, 0), std::byte{3});
  EXPECT_EQ(*(*memory)->Ema(flat, 0), std::byte{4});
  EXPECT_EQ(*(*memory)->Buffer(layout_->units()[1].buffers[0]), std::byte{5});
  EXPECT_EQ(*(*memory)->GatherSlot(2), std::byte{6});
  EXPECT_EQ(*(*memory)->GradientSlot(1), std::byte{7});
}

TEST_F(MappedMemoryTest, Map_WhatTheDaemonDescribesWronglyIsRefused) {
  using Arenas = std::vector<v1::ArenaDescription>;
  const struct {
    std::string message;
    std::function<void(Arenas&, ReceivedMemory&)> change;
  } cases[] = {
      {"descriptors came for", [](Arenas&, ReceivedMemory& r) { r.descriptors.pop_back(); }},
      {"is missing",
       [](Arenas& a, ReceivedMemory& r) {
         a.pop_back();
         r.descriptors.pop_back();
       }},
      {"came twice", [](Arenas& a, ReceivedMemory&) { a[1].set_purpose(a[0].purpose()); }},
      {"an arena of purpose 8", [](Arenas& a, ReceivedMemory&) { a[0].set_purpose(v1::MEMORY_PURPOSE_UNDO); }},
      {"an arena of purpose 99",
       [](Arenas& a, ReceivedMemory&) { a[0].set_purpose(static_cast<v1::MemoryPurpose>(99)); }},
      {"expected", [](Arenas& a, ReceivedMemory&) { a[0].set_size_bytes(a[0].size_bytes() + 4096); }},
      {"expected", [](Arenas& a, ReceivedMemory&) { a[2].set_size_bytes(~uint64_t{0}); }},
      {"is not writable", [](Arenas& a, ReceivedMemory&) { a[0].set_writable(false); }},
      {"its purpose is", [](Arenas&, ReceivedMemory& r) { std::swap(r.descriptors[0], r.descriptors[1]); }},
      {"fstat", [](Arenas&, ReceivedMemory& r) { r.descriptors[3].reset(); }},
  };
  for (const auto& test : cases) {
    Arenas arenas = daemon_.arenas();
    ReceivedMemory received = daemon_.Hand();
    test.change(arenas, received);
    const auto memory = MappedMemory::Map(layout_, Rank(1), std::move(received), arenas);
    ASSERT_FALSE(memory.ok()) << test.message;
    EXPECT_THAT(std::string(memory.status().message()), HasSubstr(test.message));
    EXPECT_FALSE(daemon_.IsConnected()) << "refused memory is given back: " << test.message;
  }
}

TEST_F(MappedMemoryTest, Map_MemoryOfAnotherRankIsRefused) {
  const auto memory = MappedMemory::Map(layout_, Rank(0), daemon_.Hand(), daemon_.arenas());
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(memory.status().message()), HasSubstr("its rank is 1, expected 0"));
}

TEST_F(MappedMemoryTest, Connection_StaysOpenAsLongAsAnyoneSharesTheMemory) {
  auto memory = MappedMemory::Map(layout_, Rank(1), daemon_.Hand(), daemon_.arenas());
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::shared_ptr<const MappedMemory> view = *memory;
  memory->reset();
  EXPECT_TRUE(daemon_.IsConnected());
  view.reset();
  EXPECT_FALSE(daemon_.IsConnected());
}

TEST_F(MappedMemoryTest, RetireAndRemap_ShowTheNewMemoryAtTheOldAddress) {
  auto memory = MappedMemory::Map(layout_, Rank(1), daemon_.Hand(), daemon_.arenas());
  ASSERT_TRUE(memory.ok()) << memory.status();
  const FlatParameter& flat = layout_->units()[0].flat_parameters[0];
  std::byte* const shard = (*memory)->Shard(flat);
  *shard = std::byte{1};
  ASSERT_TRUE((*memory)->Retire().ok());
  EXPECT_FALSE(daemon_.IsConnected());
  EXPECT_EQ(*shard, std::byte{0});

  TestRankMemory restarted(layout_, Rank(1));
  restarted.data(v1::MEMORY_PURPOSE_PARAMETERS)[flat.shard_offset] = std::byte{9};
  ASSERT_TRUE((*memory)->Remap(restarted.Hand(), restarted.arenas()).ok());
  EXPECT_TRUE(restarted.IsConnected());
  EXPECT_EQ((*memory)->Shard(flat), shard);
  EXPECT_EQ(*shard, std::byte{9});
}

TEST_F(MappedMemoryTest, Remap_OfWhatDoesNotFitLeavesAllRetired) {
  auto memory = MappedMemory::Map(layout_, Rank(1), daemon_.Hand(), daemon_.arenas());
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE((*memory)->Retire().ok());
  TestRankMemory other_rank(layout_, Rank(0));
  other_rank.data(v1::MEMORY_PURPOSE_PARAMETERS)[0] = std::byte{9};
  EXPECT_EQ((*memory)->Remap(other_rank.Hand(), other_rank.arenas()).code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(other_rank.IsConnected());
  EXPECT_EQ(*(*memory)->Shard(layout_->units()[0].flat_parameters[0]), std::byte{0});
}

}  // namespace
}  // namespace holdfast
