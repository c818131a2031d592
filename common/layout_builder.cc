#include "common/layout_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/layout_fingerprint.h"
#include "common/quoted.h"
#include "common/spec_validation.h"

namespace holdfast {
namespace {

// The current unit and two prefetched; one gradient that is written while another is reduced.
constexpr uint32_t kDefaultGatherSlots = 3;
constexpr uint32_t kDefaultGradientSlots = 2;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

DType OrElse(v1::DataType asked, DType otherwise) {
  return asked == v1::DATA_TYPE_UNSPECIFIED ? otherwise : FromProto(asked);
}

FlatParameter MakeFlat(const v1::Precision& precision, DType dtype, bool trainable) {
  FlatParameter flat = {
      .trainable = trainable, .dtype = dtype, .param_dtype = dtype, .reduce_dtype = dtype, .master_dtype = dtype};
  // fp8 and integers are carried as they are.
  if (!IsArithmetic(dtype)) return flat;
  flat.param_dtype = OrElse(precision.param(), dtype);
  flat.reduce_dtype = OrElse(precision.reduce(), flat.param_dtype);
  flat.master_dtype = OrElse(precision.master(), dtype);
  return flat;
}

absl::Status NameTaken(const std::string& field, const std::string& name) {
  return InvalidSpec(field + ".name", Quoted(name), "another parameter or buffer has that name");
}

// Takes num_elements of `dtype` at the end of what `cursor` counts, for the tensor or unit in `field`; the offset,
// bytes.
absl::StatusOr<int64_t> Take(const std::string& field, int64_t& cursor, int64_t num_elements, DType dtype) {
  const int64_t offset = RoundUp(cursor, kFlatParameterAlignment);
  int64_t size_bytes = 0;
  if (__builtin_mul_overflow(num_elements, SizeOf(dtype), &size_bytes) || size_bytes > kMaxRankBytes - offset) {
    return InvalidSpec(field,
                       absl::StrFormat("with its %d elements an arena would be larger than 2^46 bytes", num_elements),
                       "shard over more ranks");
  }
  cursor = offset + size_bytes;
  return offset;
}

}  // namespace

absl::StatusOr<ModelLayout> LayoutBuilder::Build() {
  if (absl::Status status = ValidateOptions(spec_); !status.ok()) return status;
  const absl::StatusOr<MeshShape> mesh = ValidateMesh(spec_.mesh(), world_);
  if (!mesh.ok()) return mesh.status();
  layout_.spec_ = spec_;
  layout_.mesh_ = *mesh;
  FillCopies();
  for (int i = 0; i < spec_.units_size(); ++i) {
    if (absl::Status status = AddUnit(i); !status.ok()) return status;
  }
  if (absl::Status status = PlaceRings(); !status.ok()) return status;
  FillSpec();
  if (absl::Status status = SizeArenas(); !status.ok()) return status;
  layout_.fingerprint_ = FingerprintOf(layout_);
  return std::move(layout_);
}

void LayoutBuilder::FillCopies() {
  for (const v1::EmaSpec& ema : spec_.emas()) {
    layout_.emas_.push_back({.name = ema.name(), .dtype = OrElse(ema.dtype(), DType::kFloat32)});
  }
  for (const v1::OptimizerStateSpec& state : spec_.optimizer().worker().states()) {
    layout_.states_.push_back({.name = state.name(), .dtype = FromProto(state.dtype())});
  }
}

absl::Status LayoutBuilder::AddUnit(int index) {
  const v1::UnitSpec& spec = spec_.units(index);
  const std::string field = absl::StrCat("spec.units[", index, "]");
  if (absl::Status status = ValidateName(field + ".name", spec.name()); !status.ok()) return status;
  if (!layout_.unit_indices_.emplace(spec.name(), UnitIndex(index)).second) {
    return InvalidSpec(field + ".name", Quoted(spec.name()), "another unit has that name");
  }
  UnitLayout unit = {.name = spec.name()};
  for (int i = 0; i < spec.parameters_size(); ++i) {
    const std::string of_parameter = absl::StrCat(field, ".parameters[", i, "]");
    if (absl::Status status = AddParameter(of_parameter, spec.parameters(i), unit); !status.ok()) return status;
  }
  for (int i = 0; i < spec.buffers_size(); ++i) {
    const std::string of_buffer = absl::StrCat(field, ".buffers[", i, "]");
    if (absl::Status status = AddBuffer(of_buffer, spec.buffers(i), unit); !status.ok()) return status;
  }
  if (absl::Status status = PlaceUnit(field, unit); !status.ok()) return status;
  layout_.units_.push_back(std::move(unit));
  return absl::OkStatus();
}

absl::StatusOr<bool> LayoutBuilder::IsIgnored(const std::string& field, const std::string& name) {
  absl::StatusOr<bool> ignored = ignored_.Contains(name);
  // Whether a name is ignored depends on the name alone: its double is ignored, too.
  if (ignored.ok() && *ignored && !ignored_so_far_.insert(name).second) return NameTaken(field, name);
  return ignored;
}

absl::Status LayoutBuilder::AddName(const std::string& field, const std::string& name, TensorLocation location) {
  if (!layout_.tensors_.emplace(name, location).second) return NameTaken(field, name);
  layout_.tensor_names_.push_back(name);
  return absl::OkStatus();
}

absl::Status LayoutBuilder::AddParameter(const std::string& field, const v1::ParameterSpec& parameter,
                                         UnitLayout& unit) {
  const absl::StatusOr<int64_t> num_elements =
      ValidateTensor(field, parameter.name(), parameter.shape(), parameter.dtype());
  if (!num_elements.ok()) return num_elements.status();
  const absl::StatusOr<bool> ignored = IsIgnored(field, parameter.name());
  if (!ignored.ok()) return ignored.status();
  if (*ignored) return absl::OkStatus();
  const DType dtype = FromProto(parameter.dtype());
  if (!parameter.frozen() && !IsArithmetic(dtype)) {
    return InvalidSpec(field + ".dtype", absl::StrCat(Quoted(parameter.name()), " is ", std::string(Name(dtype))),
                       "only float32, bfloat16, float16 and float64 can be trained; set frozen");
  }
  if (!parameter.alias_of().empty()) return AddAlias(field, parameter);

  const auto same = [&](const FlatParameter& flat) {
    return flat.dtype == dtype && flat.trainable == !parameter.frozen();
  };
  auto flat = std::find_if(unit.flat_parameters.begin(), unit.flat_parameters.end(), same);
  if (flat == unit.flat_parameters.end()) {
    unit.flat_parameters.push_back(MakeFlat(spec_.precision(), dtype, !parameter.frozen()));
    flat = unit.flat_parameters.end() - 1;
  }
  const TensorLocation location = {.unit = UnitIndex(static_cast<int32_t>(layout_.units_.size())),
                                   .flat_parameter = static_cast<int32_t>(flat - unit.flat_parameters.begin()),
                                   .index = static_cast<int32_t>(flat->parameters.size())};
  if (absl::Status status = AddName(field, parameter.name(), location); !status.ok()) return status;
  parameters_.emplace(parameter.name(), &parameter);
  flat->parameters.push_back({.name = parameter.name(),
                              .shape = {parameter.shape().begin(), parameter.shape().end()},
                              .dtype = dtype,
                              .num_elements = *num_elements,
                              .offset = flat->num_elements});
  flat->num_elements += *num_elements;
  layout_.num_elements_ += *num_elements;
  // Each is no larger than the limit, so that the sum can't overflow before this is seen.
  if (layout_.num_elements_ > kMaxRankBytes) {
    return InvalidSpec(field,
                       absl::StrFormat("with its %d elements the model has %d", *num_elements, layout_.num_elements_),
                       "at most 2^46 are possible");
  }
  return absl::OkStatus();
}

absl::Status LayoutBuilder::AddAlias(const std::string& field, const v1::ParameterSpec& parameter) {
  const auto original = parameters_.find(parameter.alias_of());
  if (original == parameters_.end()) {
    return InvalidSpec(field + ".alias_of", Quoted(parameter.alias_of()),
                       "it must name an earlier parameter of the model that is neither an alias nor ignored");
  }
  const v1::ParameterSpec& target = *original->second;
  const bool same_shape =
      std::equal(target.shape().begin(), target.shape().end(), parameter.shape().begin(), parameter.shape().end());
  if (!same_shape || target.dtype() != parameter.dtype() || target.frozen() != parameter.frozen()) {
    return InvalidSpec(field + ".alias_of",
                       absl::StrCat(Quoted(parameter.alias_of()), " differs from ", Quoted(parameter.name())),
                       "shape, dtype and frozen of tied weights must be the same");
  }
  return AddName(field, parameter.name(), layout_.tensors_.at(parameter.alias_of()));
}

absl::Status LayoutBuilder::AddBuffer(const std::string& field, const v1::BufferSpec& buffer, UnitLayout& unit) {
  const absl::StatusOr<int64_t> num_elements = ValidateTensor(field, buffer.name(), buffer.shape(), buffer.dtype());
  if (!num_elements.ok()) return num_elements.status();
  const absl::StatusOr<bool> ignored = IsIgnored(field, buffer.name());
  if (!ignored.ok()) return ignored.status();
  if (*ignored) return absl::OkStatus();
  const TensorLocation location = {.unit = UnitIndex(static_cast<int32_t>(layout_.units_.size())),
                                   .flat_parameter = -1,
                                   .index = static_cast<int32_t>(unit.buffers.size())};
  if (absl::Status status = AddName(field, buffer.name(), location); !status.ok()) return status;
  const DType own = FromProto(buffer.dtype());
  const DType dtype = IsArithmetic(own) ? OrElse(spec_.precision().buffer(), own) : own;
  const absl::StatusOr<int64_t> offset = Take(field, cursors_[v1::MEMORY_PURPOSE_BUFFERS], *num_elements, dtype);
  if (!offset.ok()) return offset.status();
  unit.buffers.push_back({.name = buffer.name(),
                          .shape = {buffer.shape().begin(), buffer.shape().end()},
                          .dtype = dtype,
                          .num_elements = *num_elements,
                          .offset = *offset});
  return absl::OkStatus();
}

absl::Status LayoutBuilder::PlaceUnit(const std::string& field, UnitLayout& unit) {
  const int32_t num_shard = layout_.mesh_.num_shard;
  absl::Status failed;
  const auto take = [&](int64_t& cursor, int64_t num_elements, DType dtype) -> int64_t {
    const absl::StatusOr<int64_t> offset = Take(field, cursor, num_elements, dtype);
    if (offset.ok()) return *offset;
    failed.Update(offset.status());
    return 0;
  };
  for (FlatParameter& flat : unit.flat_parameters) {
    flat.shard_elements = (flat.num_elements + num_shard - 1) / num_shard;
    const int64_t shard = flat.shard_elements;
    flat.shard_offset = take(cursors_[v1::MEMORY_PURPOSE_PARAMETERS], shard, flat.master_dtype);
    flat.gather_offset = take(unit.gather_bytes, flat.padded_elements(num_shard), flat.param_dtype);
    if (!flat.trainable) continue;
    flat.gradient_offset = take(cursors_[v1::MEMORY_PURPOSE_GRADIENTS], shard, flat.master_dtype);
    flat.gradient_slot_offset = take(unit.gradient_bytes, flat.padded_elements(num_shard), flat.reduce_dtype);
    for (size_t i = 0; i < layout_.states_.size(); ++i) {
      flat.state_offsets.push_back(
          take(cursors_[v1::MEMORY_PURPOSE_OPTIMIZER_STATE], shard, layout_.StateDType(flat, i)));
    }
    for (const NamedCopy& ema : layout_.emas_) {
      flat.ema_offsets.push_back(take(cursors_[v1::MEMORY_PURPOSE_EMA], shard, ema.dtype));
    }
  }
  return failed;
}

absl::Status LayoutBuilder::PlaceRings() {
  int64_t gather_bytes = 0;
  int64_t gradient_bytes = 0;
  uint32_t num_gathered = 0;
  for (const UnitLayout& unit : layout_.units_) {
    gather_bytes = std::max(gather_bytes, unit.gather_bytes);
    gradient_bytes = std::max(gradient_bytes, unit.gradient_bytes);
    // One of parameters without elements counts: a trainer that gathers it gets a slot.
    if (!unit.flat_parameters.empty()) ++num_gathered;
  }
  uint32_t gather_slots = spec_.gather_slots();
  if (gather_slots == 0 && layout_.strategy() == v1::SHARDING_STRATEGY_SHARD_GRAD_OP) {
    gather_slots = std::max<uint32_t>(num_gathered, 1);
    if (gather_slots > kMaxRingSlots) {
      return InvalidSpec("spec.gather_slots",
                         absl::StrCat("SHARD_GRAD_OP would keep ", num_gathered, " units gathered"),
                         absl::StrCat("at most ", kMaxRingSlots, " are possible; give a number"));
    }
  }
  const uint32_t gradient_slots = spec_.gradient_slots();
  layout_.gather_slots_ = static_cast<int32_t>(gather_slots == 0 ? kDefaultGatherSlots : gather_slots);
  layout_.gradient_slots_ = static_cast<int32_t>(gradient_slots == 0 ? kDefaultGradientSlots : gradient_slots);
  layout_.gather_slot_bytes_ = std::max(RoundUp(gather_bytes, kPageBytes), kPageBytes);
  layout_.gradient_slot_bytes_ = std::max(RoundUp(gradient_bytes, kPageBytes), kPageBytes);
  // A slot is no larger than 2^46 bytes, and there are 2^8 at most.
  cursors_[v1::MEMORY_PURPOSE_GATHER_SLOTS] = layout_.gather_slots_ * layout_.gather_slot_bytes_;
  cursors_[v1::MEMORY_PURPOSE_GRADIENT_SLOTS] = layout_.gradient_slots_ * layout_.gradient_slot_bytes_;
  return absl::OkStatus();
}

absl::Status LayoutBuilder::SizeArenas() {
  int64_t& undo = cursors_[v1::MEMORY_PURPOSE_UNDO];
  if (spec_.update_protection() != v1::UPDATE_PROTECTION_NONE) {
    for (const v1::MemoryPurpose purpose :
         {v1::MEMORY_PURPOSE_PARAMETERS, v1::MEMORY_PURPOSE_OPTIMIZER_STATE, v1::MEMORY_PURPOSE_BUFFERS}) {
      undo += RoundUp(cursors_[purpose], kPageBytes);
    }
  }
  for (size_t i = v1::MemoryPurpose_MIN + 1; i < cursors_.size(); ++i) {
    layout_.arena_bytes_[i] = kPageBytes + RoundUp(cursors_[i], kPageBytes);
  }
  if (layout_.BytesPerRank() <= kMaxRankBytes) return absl::OkStatus();
  return InvalidSpec(
      "spec", absl::StrFormat("each rank of model '%s' would need %d bytes", spec_.name(), layout_.BytesPerRank()),
      "at most 2^46 are possible; shard over more ranks or use fewer slots");
}

void LayoutBuilder::FillSpec() {
  v1::ModelSpec& spec = layout_.spec_;
  spec.mutable_mesh()->set_num_replicate(static_cast<uint32_t>(layout_.mesh_.num_replicate));
  spec.mutable_mesh()->set_num_shard(static_cast<uint32_t>(layout_.mesh_.num_shard));
  spec.set_gather_slots(static_cast<uint32_t>(layout_.gather_slots_));
  spec.set_gradient_slots(static_cast<uint32_t>(layout_.gradient_slots_));
  if (spec.update_protection() == v1::UPDATE_PROTECTION_UNSPECIFIED) {
    spec.set_update_protection(v1::UPDATE_PROTECTION_UNDO_COPY);
  }
  for (v1::EmaSpec& ema : *spec.mutable_emas()) {
    if (ema.dtype() == v1::DATA_TYPE_UNSPECIFIED) ema.set_dtype(v1::DATA_TYPE_FLOAT32);
    if (ema.update_every() == 0) ema.set_update_every(1);
  }
  // An empty message says what a missing one says.
  if (spec.precision().ByteSizeLong() == 0) spec.clear_precision();
  if (spec.has_optimizer() && spec.optimizer().worker().ByteSizeLong() == 0) spec.mutable_optimizer()->clear_worker();
  if (spec.optimizer().ByteSizeLong() == 0) spec.clear_optimizer();
}

}  // namespace holdfast
