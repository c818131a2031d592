#include "server/core/ema_copies.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/core/ema_schedule.h"

namespace holdfast {
namespace {

// The random bits depend on the step, the copy and the element's place in the model, not on the mesh.
uint64_t RoundingSeed(Step step, size_t ema, size_t unit, size_t flat) {
  uint64_t seed = step.value();
  for (const uint64_t part : {uint64_t{ema}, uint64_t{unit}, uint64_t{flat}}) {
    // SplitMix64's finalizer (Steele et al., 2014).
    seed += 0x9e3779b97f4a7c15 + part;
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
    seed ^= seed >> 31;
  }
  return seed;
}

}  // namespace

EmaCopies::EmaCopies(const ModelLayout& layout) : layout_(layout) {
  for (const NamedCopy& ema : layout.emas()) positions_.push_back({.name = ema.name});
}

absl::StatusOr<std::vector<size_t>> EmaCopies::Select(absl::Span<const std::string> names) const {
  std::vector<bool> is_selected(positions_.size(), names.empty());
  for (const std::string& name : names) {
    size_t i = 0;
    while (i < positions_.size() && positions_[i].name != name) ++i;
    if (i == positions_.size()) {
      const std::string known = absl::StrJoin(
          positions_, ", ", [](std::string* out, const EmaPosition& p) { absl::StrAppend(out, "'", p.name, "'"); });
      return absl::NotFoundError(absl::StrCat("ema: model '", layout_.name(), "' has no EMA '", name, "'; it has ",
                                              known.empty() ? "none" : known));
    }
    is_selected[i] = true;
  }
  std::vector<size_t> selected;
  for (size_t i = 0; i < positions_.size(); ++i) {
    if (is_selected[i]) selected.push_back(i);
  }
  return selected;
}

std::vector<EmaTask> EmaMoveTasks(const ModelLayout& layout, const RankMemory& memory, size_t ema, Step step,
                                  const ShardSource& shard) {
  const v1::EmaSpec& spec = layout.spec().emas(static_cast<int>(ema));
  std::vector<EmaTask> tasks;
  if (!UpdatesAt(spec, step)) return tasks;
  const double decay = DecayAt(spec, step);
  const auto shard_index = static_cast<uint64_t>(layout.mesh().ShardOf(memory.rank()));
  for (size_t unit = 0; unit < layout.units().size(); ++unit) {
    const std::vector<FlatParameter>& flats = layout.units()[unit].flat_parameters;
    for (size_t i = 0; i < flats.size(); ++i) {
      const FlatParameter& flat = flats[i];
      if (!flat.trainable) continue;
      tasks.push_back({.parameter = shard(memory, flat),
                       .parameter_dtype = flat.master_dtype,
                       .ema = memory.Ema(flat, ema),
                       .ema_dtype = layout.emas()[ema].dtype,
                       .num_elements = flat.shard_elements,
                       .decay = decay,
                       .seed = RoundingSeed(step, ema, unit, i),
                       .first_element = shard_index * static_cast<uint64_t>(flat.shard_elements)});
    }
  }
  return tasks;
}

std::vector<CopyTask> EmaCopyInTasks(const ModelLayout& layout, const RankMemory& memory) {
  std::vector<CopyTask> tasks;
  for (const UnitLayout& unit : layout.units()) {
    for (const FlatParameter& flat : unit.flat_parameters) {
      if (!flat.trainable) continue;
      for (size_t ema = 0; ema < layout.emas().size(); ++ema) {
        tasks.push_back({.src = memory.Shard(flat),
                         .src_dtype = flat.master_dtype,
                         .dst = memory.Ema(flat, ema),
                         .dst_dtype = layout.emas()[ema].dtype,
                         .num_elements = flat.shard_elements});
      }
    }
  }
  return tasks;
}

EmaResult EmaCopies::MovedTo(size_t ema, Step step) {
  const v1::EmaSpec& spec = layout_.spec().emas(static_cast<int>(ema));
  EmaPosition& position = positions_[ema];
  const bool updates = UpdatesAt(spec, step);
  EmaResult result = {.name = position.name, .decay = updates ? DecayAt(spec, step) : 1};
  if (step > position.step) {
    result.applied = updates;
    position.step = step;
    if (updates) ++position.num_updates;
  }
  result.num_updates = position.num_updates;
  return result;
}

void EmaCopies::CopiedIn(Step step) {
  for (EmaPosition& position : positions_) {
    position.step = step;
    position.num_updates = 0;
  }
}

}  // namespace holdfast
