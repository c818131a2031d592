// All memory of one rank, as a worker sees it.
#ifndef HOLDFAST_CLIENT_MAPPED_MEMORY_H_
#define HOLDFAST_CLIENT_MAPPED_MEMORY_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/mapped_arena.h"
#include "common/ids.h"
#include "common/layout.h"
#include "common/memory_handover.h"
#include "holdfast/v1/parameter_service.pb.h"

namespace holdfast {

// Shared by a session and every tensor that shows some of it; unmapped with the last of them, and only then does the
// daemon learn, by the end of the memory connection, that the rank's memory can be given to another process.
// Addresses never change. The accessors are thread-safe; Retire and Remap may run beside them.
class MappedMemory {
 public:
  // Maps what was received; `arenas` describe the descriptors, in their order. INTERNAL: one is missing, there twice,
  // or not what the layout asks for.
  static absl::StatusOr<std::shared_ptr<MappedMemory>> Map(std::shared_ptr<const ModelLayout> layout, Rank rank,
                                                           ReceivedMemory received,
                                                           const std::vector<v1::ArenaDescription>& arenas);

  // Gives all memory up and closes the memory connection; every address shows zeros until Remap.
  absl::Status Retire();
  // Shows the memory of a new lease, of the same layout, at the old addresses. On an error all is retired.
  absl::Status Remap(ReceivedMemory received, const std::vector<v1::ArenaDescription>& arenas);

  const ModelLayout& layout() const { return *layout_; }
  Rank rank() const { return rank_; }

  std::byte* Shard(const FlatParameter& flat) const { return At(v1::MEMORY_PURPOSE_PARAMETERS, flat.shard_offset); }
  // Of a trainable flat parameter, as the next two.
  std::byte* Gradient(const FlatParameter& flat) const {
    return At(v1::MEMORY_PURPOSE_GRADIENTS, flat.gradient_offset);
  }
  std::byte* State(const FlatParameter& flat, size_t state) const {
    return At(v1::MEMORY_PURPOSE_OPTIMIZER_STATE, flat.state_offsets[state]);
  }
  const std::byte* Ema(const FlatParameter& flat, size_t ema) const {
    return At(v1::MEMORY_PURPOSE_EMA, flat.ema_offsets[ema]);
  }
  std::byte* Buffer(const BufferLayout& buffer) const { return At(v1::MEMORY_PURPOSE_BUFFERS, buffer.offset); }
  // 0 ≤ slot < layout().gather_slots().
  const std::byte* GatherSlot(int32_t slot) const {
    return At(v1::MEMORY_PURPOSE_GATHER_SLOTS, slot * layout_->gather_slot_bytes());
  }
  // 0 ≤ slot < layout().gradient_slots().
  std::byte* GradientSlot(int32_t slot) const {
    return At(v1::MEMORY_PURPOSE_GRADIENT_SLOTS, slot * layout_->gradient_slot_bytes());
  }
  const CompletionWord& GatherWord(int32_t slot) const {
    return arenas_[v1::MEMORY_PURPOSE_GATHER_SLOTS].header().words[slot];
  }

 private:
  MappedMemory(std::shared_ptr<const ModelLayout> layout, Rank rank) : layout_(std::move(layout)), rank_(rank) {}

  std::byte* At(v1::MemoryPurpose purpose, int64_t offset) const { return arenas_[purpose].data() + offset; }
  // Checks the descriptions against the layout before anything is mapped.
  absl::StatusOr<std::vector<ArenaExpectation>> Expect(const ReceivedMemory& received,
                                                       const std::vector<v1::ArenaDescription>& arenas) const;

  const std::shared_ptr<const ModelLayout> layout_;
  const Rank rank_;
  // Before the arenas, so that it is closed after they are unmapped.
  UniqueFd connection_;
  // By purpose; UNDO stays unmapped.
  std::array<MappedArena, v1::MemoryPurpose_ARRAYSIZE> arenas_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_MAPPED_MEMORY_H_
