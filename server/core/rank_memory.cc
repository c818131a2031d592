#include "server/core/rank_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

// What a worker has no business writing is not writable.
bool IsWritable(v1::MemoryPurpose purpose) {
  return purpose != v1::MEMORY_PURPOSE_EMA && purpose != v1::MEMORY_PURPOSE_GATHER_SLOTS;
}

uint32_t NumWords(const ModelLayout& layout, v1::MemoryPurpose purpose) {
  if (purpose == v1::MEMORY_PURPOSE_GATHER_SLOTS) return static_cast<uint32_t>(layout.gather_slots());
  if (purpose == v1::MEMORY_PURPOSE_GRADIENT_SLOTS) return static_cast<uint32_t>(layout.gradient_slots());
  return 0;
}

CopyTask CopyBytes(const std::byte* src, std::byte* dst, int64_t size_bytes) {
  return {.src = src, .src_dtype = DType::kUInt8, .dst = dst, .dst_dtype = DType::kUInt8, .num_elements = size_bytes};
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankMemory>> RankMemory::Create(const ModelLayout& layout, Rank rank, Device& device) {
  auto memory = std::unique_ptr<RankMemory>(new RankMemory(layout, rank, device));
  for (const v1::MemoryUse& use : layout.Memory()) {
    const std::string label =
        absl::StrCat(layout.name(), ".", rank.value(), ".", v1::MemoryPurpose_Name(use.purpose()));
    absl::StatusOr<std::unique_ptr<Arena>> arena = device.Allocate(label, static_cast<int64_t>(use.size_bytes()));
    if (!arena.ok()) return arena.status();
    ArenaHeader& header = (*arena)->header();
    header.magic = kArenaMagic;
    header.version = kArenaVersion;
    header.purpose = use.purpose();
    header.fingerprint = layout.fingerprint();
    header.size_bytes = use.size_bytes();
    header.rank = rank.value();
    header.num_words = NumWords(layout, use.purpose());
    memory->arenas_[use.purpose()] = *std::move(arena);
  }
  return memory;
}

std::vector<CopyTask> RankMemory::UndoSave() const {
  std::vector<CopyTask> tasks;
  for (const v1::MemoryPurpose purpose : kUndone) {
    std::byte* live = At(purpose, 0);
    tasks.push_back(CopyBytes(live, UndoOf(purpose, live), DataBytes(purpose)));
  }
  return tasks;
}

std::vector<CopyTask> RankMemory::UndoRestore() const {
  std::vector<CopyTask> tasks = UndoSave();
  for (CopyTask& task : tasks) {
    // UndoSave's destinations are this object's own memory; only the direction is turned.
    void* live = const_cast<void*>(task.src);
    task.src = task.dst;
    task.dst = live;
  }
  return tasks;
}

std::byte* RankMemory::UndoOf(v1::MemoryPurpose purpose, const std::byte* live) const {
  int64_t offset = 0;
  for (const v1::MemoryPurpose earlier : kUndone) {
    if (earlier == purpose) break;
    offset += DataBytes(earlier);
  }
  return At(v1::MEMORY_PURPOSE_UNDO, offset + (live - At(purpose, 0)));
}

void RankMemory::PublishPosition(Epoch epoch, Step step, bool initialized, bool torn) const {
  for (const std::unique_ptr<Arena>& arena : arenas_) {
    if (arena == nullptr) continue;
    ArenaHeader& header = arena->header();
    header.step.store(step.value(), std::memory_order_release);
    header.epoch.store(epoch.value(), std::memory_order_release);
    header.initialized.store(initialized ? 1 : 0, std::memory_order_release);
    header.torn.store(torn ? 1 : 0, std::memory_order_release);
  }
}

std::vector<ExportedArena> RankMemory::Exported() const {
  std::vector<ExportedArena> exported;
  for (size_t i = 0; i < arenas_.size(); ++i) {
    const auto purpose = static_cast<v1::MemoryPurpose>(i);
    if (arenas_[i] == nullptr || purpose == v1::MEMORY_PURPOSE_UNDO) continue;
    exported.push_back({.purpose = purpose, .size_bytes = arenas_[i]->size_bytes(), .writable = IsWritable(purpose)});
  }
  return exported;
}

absl::StatusOr<std::vector<UniqueFd>> RankMemory::Descriptors() const {
  std::vector<UniqueFd> descriptors;
  for (const ExportedArena& exported : Exported()) {
    absl::StatusOr<UniqueFd> fd = arenas_[exported.purpose]->Export(exported.writable);
    if (!fd.ok()) return fd.status();
    descriptors.push_back(*std::move(fd));
  }
  return descriptors;
}

}  // namespace holdfast
