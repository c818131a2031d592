// Pull of a Model: whole tensors out of the shards.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/shard_ranges.h"
#include "server/core/model.h"

namespace holdfast {
namespace {

int64_t EmaIndex(const ModelLayout& layout, std::string_view name) {
  for (size_t i = 0; i < layout.emas().size(); ++i) {
    if (layout.emas()[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

absl::Status NoSuchEma(const ModelLayout& layout, std::string_view name) {
  return absl::NotFoundError(absl::StrFormat("ema: model '%s' has no EMA '%s'", layout.name(), name));
}

bool IsTrainable(const ModelLayout& layout, const TensorLocation& location) {
  return location.flat_parameter >= 0 &&
         layout.unit(location.unit).flat_parameters[static_cast<size_t>(location.flat_parameter)].trainable;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Model::SelectTensors(absl::Span<const std::string> names,
                                                              std::string_view ema) const {
  if (!ema.empty() && EmaIndex(layout_, ema) < 0) return NoSuchEma(layout_, ema);
  std::vector<std::string> candidates;
  for (const std::string& tensor : layout_.tensor_names()) {
    const absl::StatusOr<TensorLocation> location = layout_.FindTensor(tensor);
    if (!location.ok()) return location.status();
    if (ema.empty() || IsTrainable(layout_, *location)) candidates.push_back(tensor);
  }
  std::vector<bool> selected(candidates.size(), names.empty());
  for (const std::string& name : names) {
    bool matched = false;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (!MatchesGlob(candidates[i], name)) continue;
      selected[i] = true;
      matched = true;
    }
    if (!matched) {
      return absl::NotFoundError(absl::StrFormat("names: '%s' matches no %s of model '%s'", name,
                                                 ema.empty() ? "parameter or buffer" : "trainable parameter",
                                                 layout_.name()));
    }
  }
  std::vector<std::string> result;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (selected[i]) result.push_back(std::move(candidates[i]));
  }
  return result;
}

void Model::Pull(const PullCall& call, Done<PulledTensor> done) {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckReadable();
  // An EMA has not been written by the worker that tore the parameters.
  if (torn_ && initialized_ && !call.ema.empty()) status = absl::OkStatus();
  queue_.Push(
      [this, call, status, done = std::move(done)]() mutable { status.ok() ? done(RunPull(call)) : done(status); });
}

absl::StatusOr<PulledTensor> Model::RunPull(const PullCall& call) {
  const absl::StatusOr<TensorLocation> location = layout_.FindTensor(call.tensor);
  if (!location.ok()) return location.status();
  const int64_t ema = EmaIndex(layout_, call.ema);
  if (!call.ema.empty() && ema < 0) return NoSuchEma(layout_, call.ema);
  const UnitLayout& unit = layout_.unit(location->unit);
  const bool is_buffer = location->flat_parameter < 0;
  const FlatParameter* flat =
      is_buffer ? nullptr : &unit.flat_parameters[static_cast<size_t>(location->flat_parameter)];
  if (ema >= 0 && !IsTrainable(layout_, *location)) {
    return absl::NotFoundError(
        absl::StrFormat("names: '%s' is not trainable, so EMA '%s' has no copy of it", call.tensor, call.ema));
  }
  const size_t index = static_cast<size_t>(location->index);
  const DType kept = is_buffer  ? unit.buffers[index].dtype
                     : ema >= 0 ? layout_.emas()[static_cast<size_t>(ema)].dtype
                                : flat->master_dtype;
  const int64_t num_elements = is_buffer ? unit.buffers[index].num_elements : flat->parameters[index].num_elements;

  PulledTensor pulled;
  pulled.dtype = call.dtype != DType::kUnspecified && IsArithmetic(kept) ? call.dtype : kept;
  pulled.shape = is_buffer ? unit.buffers[index].shape : flat->parameters[index].shape;
  const int64_t size_bytes = num_elements * SizeOf(pulled.dtype);
  absl::StatusOr<StagingBudget::Reservation> staged = options_.staging->Reserve(size_bytes);
  if (!staged.ok()) return staged.status();
  pulled.staged = *std::move(staged);
  pulled.bytes.resize(static_cast<size_t>(size_bytes));

  const auto exposed = std::find(exposed_.begin(), exposed_.end(), true);
  if (ema < 0 && exposed != exposed_.end()) {
    return absl::UnavailableError(
        absl::StrFormat("rank %d is writing its shards, of which there is no undo copy; pull again after its commit",
                        exposed - exposed_.begin()));
  }
  // Replica 0 has all shards, and rank 0 all buffers.
  std::vector<std::pair<Rank, CopyTask>> pieces;
  if (is_buffer) {
    const RankMemory& memory = *memory_[0];
    std::byte* live = memory.Buffer(unit.buffers[index]);
    pieces.push_back({memory.rank(),
                      {.src = undo_valid_[0] ? memory.UndoOf(v1::MEMORY_PURPOSE_BUFFERS, live) : live,
                       .src_dtype = kept,
                       .dst = pulled.bytes.data(),
                       .dst_dtype = pulled.dtype,
                       .num_elements = num_elements}});
  } else {
    for (const ShardRange& range : ShardRangesOf(flat->parameters[index], flat->shard_elements)) {
      const RankMemory& memory = this->memory(layout_.mesh().RankAt(0, range.shard));
      const std::byte* shard = ema >= 0 ? memory.Ema(*flat, static_cast<size_t>(ema)) : CommittedShard(memory, *flat);
      pieces.push_back({memory.rank(),
                        {.src = shard + range.shard_begin * SizeOf(kept),
                         .src_dtype = kept,
                         .dst = pulled.bytes.data() + range.parameter_begin * SizeOf(pulled.dtype),
                         .dst_dtype = pulled.dtype,
                         .num_elements = range.num_elements}});
    }
  }
  absl::Status status;
  for (const auto& [rank, task] : pieces) status.Update(memory(rank).device().Copy(stream(rank), {task}));
  status.Update(SynchronizeAll());
  if (!status.ok()) return status;
  pulled.step = ema >= 0 ? launched_ema_steps_[static_cast<size_t>(ema)] : launched_step_;
  observer_.Pulled(size_bytes);
  return pulled;
}

}  // namespace holdfast
