#include "common/layout.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/layout_builder.h"
#include "common/quoted.h"

namespace holdfast {

absl::StatusOr<ModelLayout> ModelLayout::Create(const v1::ModelSpec& spec, int32_t world) {
  return LayoutBuilder(spec, world).Build();
}

DType ModelLayout::StateDType(const FlatParameter& flat, size_t state) const {
  return states_[state].dtype == DType::kUnspecified ? flat.master_dtype : states_[state].dtype;
}

absl::StatusOr<UnitIndex> ModelLayout::FindUnit(std::string_view name) const {
  const auto found = unit_indices_.find(std::string(name));
  if (found != unit_indices_.end()) return found->second;
  constexpr size_t kShown = 5;
  std::vector<std::string> known;
  for (size_t i = 0; i < units_.size() && i < kShown; ++i) known.push_back(Quoted(units_[i].name));
  if (units_.size() > kShown) known.push_back(absl::StrFormat("… (%d in all)", units_.size()));
  return absl::NotFoundError(absl::StrFormat("unit: model '%s' has no unit %s; its units are %s", spec_.name(),
                                             Quoted(name), absl::StrJoin(known, ", ")));
}

absl::StatusOr<TensorLocation> ModelLayout::FindTensor(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  if (found != tensors_.end()) return found->second;
  return absl::NotFoundError(absl::StrFormat("model '%s' has no parameter or buffer %s", spec_.name(), Quoted(name)));
}

int64_t ModelLayout::ArenaBytes(v1::MemoryPurpose purpose) const {
  return v1::MemoryPurpose_IsValid(purpose) ? arena_bytes_[static_cast<size_t>(purpose)] : 0;
}

std::vector<v1::MemoryUse> ModelLayout::Memory() const {
  std::vector<v1::MemoryUse> memory;
  for (int i = v1::MemoryPurpose_MIN + 1; i <= v1::MemoryPurpose_MAX; ++i) {
    const auto purpose = static_cast<v1::MemoryPurpose>(i);
    if (purpose == v1::MEMORY_PURPOSE_UNDO && spec_.update_protection() == v1::UPDATE_PROTECTION_NONE) continue;
    v1::MemoryUse use;
    use.set_purpose(purpose);
    use.set_size_bytes(static_cast<uint64_t>(ArenaBytes(purpose)));
    memory.push_back(std::move(use));
  }
  return memory;
}

int64_t ModelLayout::BytesPerRank() const {
  int64_t sum = 0;
  for (const v1::MemoryUse& use : Memory()) sum += static_cast<int64_t>(use.size_bytes());
  return sum;
}

std::string FingerprintText(uint64_t fingerprint) { return absl::StrFormat("%016x", fingerprint); }

}  // namespace holdfast
