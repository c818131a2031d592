// The arenas of one rank.
#ifndef HOLDFAST_SERVER_CORE_RANK_MEMORY_H_
#define HOLDFAST_SERVER_CORE_RANK_MEMORY_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/layout.h"
#include "common/unique_fd.h"
#include "server/device/device.h"

namespace holdfast {

// What a worker is handed: one entry an arena that it may map.
struct ExportedArena {
  v1::MemoryPurpose purpose;
  int64_t size_bytes = 0;
  bool writable = false;
};

// Immutable once created, but for the memory itself. Thread-safe in that sense.
class RankMemory {
 public:
  // Takes all memory of `rank`; on an error none is kept. `layout` and `device` must outlive it.
  static absl::StatusOr<std::unique_ptr<RankMemory>> Create(const ModelLayout& layout, Rank rank, Device& device);

  Device& device() const { return device_; }
  Rank rank() const { return rank_; }

  // Device addresses.
  std::byte* Shard(const FlatParameter& flat) const { return At(v1::MEMORY_PURPOSE_PARAMETERS, flat.shard_offset); }
  std::byte* Gradient(const FlatParameter& flat) const {
    return At(v1::MEMORY_PURPOSE_GRADIENTS, flat.gradient_offset);
  }
  std::byte* Ema(const FlatParameter& flat, size_t ema) const {
    return At(v1::MEMORY_PURPOSE_EMA, flat.ema_offsets[ema]);
  }
  std::byte* Buffer(const BufferLayout& buffer) const { return At(v1::MEMORY_PURPOSE_BUFFERS, buffer.offset); }
  std::byte* GatherSlot(int32_t slot) const {
    return At(v1::MEMORY_PURPOSE_GATHER_SLOTS, slot * layout_.gather_slot_bytes());
  }
  std::byte* GradientSlot(int32_t slot) const {
    return At(v1::MEMORY_PURPOSE_GRADIENT_SLOTS, slot * layout_.gradient_slot_bytes());
  }
  // The words of the gather ring and of the gradient ring.
  CompletionWord& GatherWord(int32_t slot) const { return Header(v1::MEMORY_PURPOSE_GATHER_SLOTS).words[slot]; }
  CompletionWord& GradientWord(int32_t slot) const { return Header(v1::MEMORY_PURPOSE_GRADIENT_SLOTS).words[slot]; }

  // The undo copy holds the data of these arenas one after the other, in this order.
  static constexpr std::array<v1::MemoryPurpose, 3> kUndone = {
      v1::MEMORY_PURPOSE_PARAMETERS, v1::MEMORY_PURPOSE_OPTIMIZER_STATE, v1::MEMORY_PURPOSE_BUFFERS};
  bool has_undo() const { return arenas_[v1::MEMORY_PURPOSE_UNDO] != nullptr; }
  // Copies from the live data to the undo copy.
  std::vector<CopyTask> UndoSave() const;
  // And back.
  std::vector<CopyTask> UndoRestore() const;
  // Where the undo copy keeps what is at `live`, an address in the arena of `purpose` (one of kUndone).
  std::byte* UndoOf(v1::MemoryPurpose purpose, const std::byte* live) const;

  // Writes where the model stands to every header page.
  void PublishPosition(Epoch epoch, Step step, bool initialized, bool torn) const;

  // In the order of Descriptors().
  std::vector<ExportedArena> Exported() const;
  absl::StatusOr<std::vector<UniqueFd>> Descriptors() const;

 private:
  RankMemory(const ModelLayout& layout, Rank rank, Device& device) : layout_(layout), rank_(rank), device_(device) {}

  ArenaHeader& Header(v1::MemoryPurpose purpose) const { return arenas_[purpose]->header(); }
  std::byte* At(v1::MemoryPurpose purpose, int64_t offset) const { return arenas_[purpose]->data() + offset; }
  int64_t DataBytes(v1::MemoryPurpose purpose) const { return arenas_[purpose]->size_bytes() - kPageBytes; }

  const ModelLayout& layout_;
  const Rank rank_;
  Device& device_;
  // By purpose; null where there is none.
  std::array<std::unique_ptr<Arena>, v1::MemoryPurpose_ARRAYSIZE> arenas_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_RANK_MEMORY_H_
