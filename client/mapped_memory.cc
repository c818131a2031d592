#include "client/mapped_memory.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

struct ArenaRule {
  v1::MemoryPurpose purpose;
  // Workers write it.
  bool writable;
};

constexpr ArenaRule kRules[] = {
    {v1::MEMORY_PURPOSE_PARAMETERS, true},
    {v1::MEMORY_PURPOSE_GRADIENTS, true},
    {v1::MEMORY_PURPOSE_OPTIMIZER_STATE, true},
    {v1::MEMORY_PURPOSE_BUFFERS, true},
    {v1::MEMORY_PURPOSE_EMA, false},
    {v1::MEMORY_PURPOSE_GATHER_SLOTS, false},
    {v1::MEMORY_PURPOSE_GRADIENT_SLOTS, true},
};

const ArenaRule* RuleOf(v1::MemoryPurpose purpose) {
  for (const ArenaRule& rule : kRules) {
    if (rule.purpose == purpose) return &rule;
  }
  return nullptr;
}

int32_t NumWords(const ModelLayout& layout, v1::MemoryPurpose purpose) {
  switch (purpose) {
    case v1::MEMORY_PURPOSE_GATHER_SLOTS:
      return layout.gather_slots();
    case v1::MEMORY_PURPOSE_GRADIENT_SLOTS:
      return layout.gradient_slots();
    default:
      return 0;
  }
}

absl::Status Misfit(const std::string& what) {
  return absl::InternalError(
      absl::StrCat("the daemon's memory does not fit the model's layout, nothing was mapped: ", what));
}

}  // namespace

absl::StatusOr<std::shared_ptr<MappedMemory>> MappedMemory::Map(std::shared_ptr<const ModelLayout> layout, Rank rank,
                                                                ReceivedMemory received,
                                                                const std::vector<v1::ArenaDescription>& arenas) {
  std::shared_ptr<MappedMemory> memory(new MappedMemory(std::move(layout), rank));
  absl::StatusOr<std::vector<ArenaExpectation>> expected = memory->Expect(received, arenas);
  if (!expected.ok()) return expected.status();
  for (size_t i = 0; i < expected->size(); ++i) {
    absl::StatusOr<MappedArena> arena = MappedArena::Map(received.descriptors[i], (*expected)[i]);
    if (!arena.ok()) return arena.status();
    memory->arenas_[(*expected)[i].purpose] = *std::move(arena);
  }
  memory->connection_ = std::move(received.connection);
  return memory;
}

absl::Status MappedMemory::Retire() {
  absl::Status first;
  for (MappedArena& arena : arenas_) {
    if (arena) first.Update(arena.Retire());
  }
  // Only when nothing is mapped any more may the daemon be told so.
  if (first.ok()) connection_.reset();
  return first;
}

absl::Status MappedMemory::Remap(ReceivedMemory received, const std::vector<v1::ArenaDescription>& arenas) {
  absl::StatusOr<std::vector<ArenaExpectation>> expected = Expect(received, arenas);
  absl::Status status = expected.status();
  for (size_t i = 0; status.ok() && i < expected->size(); ++i) {
    status = arenas_[(*expected)[i].purpose].Remap(received.descriptors[i], (*expected)[i]);
  }
  if (!status.ok()) {
    status.Update(Retire());
    return status;
  }
  connection_ = std::move(received.connection);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ArenaExpectation>> MappedMemory::Expect(
    const ReceivedMemory& received, const std::vector<v1::ArenaDescription>& arenas) const {
  if (received.descriptors.size() != arenas.size()) {
    return Misfit(absl::StrCat(received.descriptors.size(), " descriptors came for ", arenas.size(), " arenas"));
  }
  std::vector<ArenaExpectation> expected;
  std::array<bool, v1::MemoryPurpose_ARRAYSIZE> seen = {};
  for (const v1::ArenaDescription& arena : arenas) {
    const std::string name = v1::MemoryPurpose_Name(arena.purpose());
    const ArenaRule* rule = RuleOf(arena.purpose());
    if (rule == nullptr) return Misfit(absl::StrCat("an arena of purpose ", static_cast<int>(arena.purpose())));
    if (std::exchange(seen[arena.purpose()], true)) return Misfit(absl::StrCat(name, " came twice"));
    const int64_t size_bytes = layout_->ArenaBytes(arena.purpose());
    if (arena.size_bytes() != static_cast<uint64_t>(size_bytes)) {
      return Misfit(absl::StrCat(name, " has ", arena.size_bytes(), " bytes, expected ", size_bytes));
    }
    if (rule->writable && !arena.writable()) return Misfit(absl::StrCat(name, " is not writable"));
    expected.push_back({.purpose = arena.purpose(),
                        .size_bytes = size_bytes,
                        .writable = rule->writable,
                        .fingerprint = layout_->fingerprint(),
                        .rank = rank_,
                        .num_words = NumWords(*layout_, arena.purpose())});
  }
  for (const ArenaRule& rule : kRules) {
    if (!seen[rule.purpose]) return Misfit(absl::StrCat(v1::MemoryPurpose_Name(rule.purpose), " is missing"));
  }
  return expected;
}

}  // namespace holdfast
