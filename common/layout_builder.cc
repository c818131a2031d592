#include "common/layout_builder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/spec_validation.h"

namespace holdfast {
namespace {

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
  cursors_[v1::MEMORY_PURPOSE_UNDO] = 0;
  for (const v1::MemoryPurpose purpose :
       {v1::MEMORY_PURPOSE_PARAMETERS, v1::MEMORY_PURPOSE_OPTIMIZER_STATE, v1::MEMORY_PURPOSE_BUFFERS}) {
    cursors_[v1::MEMORY_PURPOSE_UNDO] += RoundUp(cursors_[purpose], kPageBytes);
  }
  for (int i = v1::MemoryPurpose_MIN + 1; i <= v1::MemoryPurpose_MAX; ++i) {
    layout_.arena_bytes_[i] = kPageBytes + RoundUp(cursors_[i], kPageBytes);
  }
  Fingerprint();
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

bool LayoutBuilder::IsIgnored(const std::string& name) const {
  return std::any_of(spec_.ignored_parameters().begin(), spec_.ignored_parameters().end(),
                     [&name](const std::string& glob) { return MatchesGlob(name, glob); });
}

absl::Status LayoutBuilder::AddUnit(int index) {
  const v1::UnitSpec& spec = spec_.units(index);
  const std::string field = absl::StrCat("spec.units[", index, "]");
  if (spec.name().empty() || spec.name().size() > 1024) {
    return InvalidSpec(field + ".name", absl::StrCat("it has ", spec.name().size(), " bytes"), "1 to 1024 are valid");
  }
  if (!layout_.unit_indices_.emplace(spec.name(), UnitIndex(index)).second) {
    return InvalidSpec(field + ".name", absl::StrCat("'", spec.name(), "'"), "another unit has that name");
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
  if (absl::Status status = PlaceUnit(unit); !status.ok()) return status;
  layout_.units_.push_back(std::move(unit));
  return absl::OkStatus();
}

absl::Status LayoutBuilder::AddName(const std::string& field, const std::string& name, const TensorLocation& location) {
  if (!layout_.tensors_.emplace(name, location).second || ignored_.contains(name)) {
    return InvalidSpec(field + ".name", absl::StrCat("'", name, "'"), "another parameter or buffer has that name");
  }
  layout_.tensor_names_.push_back(name);
  return absl::OkStatus();
}

absl::Status LayoutBuilder::AddParameter(const std::string& field, const v1::ParameterSpec& parameter,
                                         UnitLayout& unit) {
  const absl::StatusOr<int64_t> num_elements =
      ValidateTensor(field, parameter.name(), parameter.shape(), parameter.dtype());
  if (!num_elements.ok()) return num_elements.status();
  if (IsIgnored(parameter.name())) {
    if (!ignored_.insert(parameter.name()).second || layout_.tensors_.contains(parameter.name())) {
      return InvalidSpec(field + ".name", absl::StrCat("'", parameter.name(), "'"),
                         "another parameter or buffer has that name");
    }
    return absl::OkStatus();
  }
  const DType dtype = FromProto(parameter.dtype());
  if (!parameter.frozen() && !IsArithmetic(dtype)) {
    return InvalidSpec(field + ".dtype", absl::StrCat("'", parameter.name(), "' is ", std::string(Name(dtype))),
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
  flat->parameters.push_back({.name = parameter.name(),
                              .shape = {parameter.shape().begin(), parameter.shape().end()},
                              .dtype = dtype,
                              .num_elements = *num_elements,
                              .offset = flat->num_elements});
  flat->num_elements += *num_elements;
  layout_.num_elements_ += *num_elements;
  // Each is far below the limit, so that sums can't overflow before this is seen.
  if (layout_.num_elements_ > kMaxArenaBytes) {
    return InvalidSpec(field, absl::StrCat("the model has ", layout_.num_elements_, " elements so far"),
                       "at most 2^46 are possible");
  }
  parameters_.emplace(parameter.name(), &parameter);
  return AddName(field, parameter.name(), location);
}

absl::Status LayoutBuilder::AddAlias(const std::string& field, const v1::ParameterSpec& parameter) {
  const std::string of = absl::StrCat("'", parameter.alias_of(), "'");
  const auto original = parameters_.find(parameter.alias_of());
  if (original == parameters_.end()) {
    return InvalidSpec(field + ".alias_of", of,
                       "it must name an earlier parameter of the model that is neither an alias nor ignored");
  }
  const v1::ParameterSpec& target = *original->second;
  const bool same_shape =
      std::equal(target.shape().begin(), target.shape().end(), parameter.shape().begin(), parameter.shape().end());
  if (!same_shape || target.dtype() != parameter.dtype() || target.frozen() != parameter.frozen()) {
    return InvalidSpec(field + ".alias_of", absl::StrCat(of, " differs from '", parameter.name(), "'"),
                       "shape, dtype and frozen of tied weights must be the same");
  }
  return AddName(field, parameter.name(), layout_.tensors_.at(parameter.alias_of()));
}

absl::Status LayoutBuilder::AddBuffer(const std::string& field, const v1::BufferSpec& buffer, UnitLayout& unit) {
  const absl::StatusOr<int64_t> num_elements = ValidateTensor(field, buffer.name(), buffer.shape(), buffer.dtype());
  if (!num_elements.ok()) return num_elements.status();
  if (IsIgnored(buffer.name())) {
    if (!ignored_.insert(buffer.name()).second || layout_.tensors_.contains(buffer.name())) {
      return InvalidSpec(field + ".name", absl::StrCat("'", buffer.name(), "'"),
                         "another parameter or buffer has that name");
    }
    return absl::OkStatus();
  }
  const DType own = FromProto(buffer.dtype());
  const DType dtype = IsArithmetic(own) ? OrElse(spec_.precision().buffer(), own) : own;
  const absl::StatusOr<int64_t> offset = Take(cursors_[v1::MEMORY_PURPOSE_BUFFERS], *num_elements, dtype);
  if (!offset.ok()) return offset.status();
  const TensorLocation location = {.unit = UnitIndex(static_cast<int32_t>(layout_.units_.size())),
                                   .flat_parameter = -1,
                                   .index = static_cast<int32_t>(unit.buffers.size())};
  unit.buffers.push_back({.name = buffer.name(),
                          .shape = {buffer.shape().begin(), buffer.shape().end()},
                          .dtype = dtype,
                          .num_elements = *num_elements,
                          .offset = *offset});
  return AddName(field, buffer.name(), location);
}

absl::StatusOr<int64_t> LayoutBuilder::Take(int64_t& cursor, int64_t num_elements, DType dtype) const {
  const int64_t offset = RoundUp(cursor, kFlatParameterAlignment);
  int64_t size_bytes = 0;
  if (__builtin_mul_overflow(num_elements, SizeOf(dtype), &size_bytes) || size_bytes > kMaxArenaBytes - offset) {
    return InvalidSpec("spec", absl::StrCat("an arena of model '", spec_.name(), "' would be larger than 2^46 bytes"),
                       "shard over more ranks");
  }
  cursor = offset + size_bytes;
  return offset;
}

absl::Status LayoutBuilder::PlaceUnit(UnitLayout& unit) {
  const int32_t num_shard = layout_.mesh_.num_shard;
  absl::Status failed;
  const auto take = [&](int64_t& cursor, int64_t num_elements, DType dtype) -> int64_t {
    const absl::StatusOr<int64_t> offset = Take(cursor, num_elements, dtype);
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
    if (!unit.flat_parameters.empty()) ++num_gathered;
  }
  uint32_t gather_slots = spec_.gather_slots();
  if (gather_slots == 0 && layout_.strategy() == v1::SHARDING_STRATEGY_SHARD_GRAD_OP) {
    gather_slots = std::max<uint32_t>(num_gathered, 1);
    if (gather_slots > 256) {
      return InvalidSpec("spec.gather_slots",
                         absl::StrCat("SHARD_GRAD_OP would keep ", num_gathered, " units gathered"),
                         "at most 256 are possible; give a number");
    }
  }
  layout_.gather_slots_ = static_cast<int32_t>(gather_slots == 0 ? 3 : gather_slots);
  layout_.gradient_slots_ = static_cast<int32_t>(spec_.gradient_slots() == 0 ? 2 : spec_.gradient_slots());
  layout_.gather_slot_bytes_ = std::max(RoundUp(gather_bytes, kPageBytes), kPageBytes);
  layout_.gradient_slot_bytes_ = std::max(RoundUp(gradient_bytes, kPageBytes), kPageBytes);
  for (const auto& [purpose, slots, slot_bytes] :
       {std::tuple{v1::MEMORY_PURPOSE_GATHER_SLOTS, layout_.gather_slots_, layout_.gather_slot_bytes_},
        std::tuple{v1::MEMORY_PURPOSE_GRADIENT_SLOTS, layout_.gradient_slots_, layout_.gradient_slot_bytes_}}) {
    const absl::StatusOr<int64_t> offset = Take(cursors_[purpose], slots * slot_bytes, DType::kUInt8);
    if (!offset.ok()) return offset.status();
  }
  return absl::OkStatus();
}

void LayoutBuilder::Fingerprint() {
  // FNV-1a, 64 bits, over everything that places depend on.
  uint64_t hash = 0xcbf29ce484222325;
  const auto add_byte = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  const auto add_number = [&](uint64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<uint8_t>(number >> (8 * i)));
  };
  const auto add_text = [&](std::string_view text) {
    add_number(text.size());
    for (const char c : text) add_byte(static_cast<uint8_t>(c));
  };
  add_number(static_cast<uint64_t>(layout_.strategy()));
  add_number(static_cast<uint64_t>(layout_.mesh_.num_replicate));
  add_number(static_cast<uint64_t>(layout_.mesh_.num_shard));
  for (const UnitLayout& unit : layout_.units_) {
    add_text(unit.name);
    add_number(unit.flat_parameters.size());
    for (const FlatParameter& flat : unit.flat_parameters) {
      for (const uint64_t part : {uint64_t{flat.trainable}, static_cast<uint64_t>(flat.dtype),
                                  static_cast<uint64_t>(flat.param_dtype), static_cast<uint64_t>(flat.reduce_dtype),
                                  static_cast<uint64_t>(flat.master_dtype), uint64_t{flat.parameters.size()}}) {
        add_number(part);
      }
      for (const ParameterLayout& parameter : flat.parameters) {
        add_text(parameter.name);
        add_number(parameter.shape.size());
        for (const int64_t length : parameter.shape) add_number(static_cast<uint64_t>(length));
      }
    }
    add_number(unit.buffers.size());
    for (const BufferLayout& buffer : unit.buffers) {
      add_text(buffer.name);
      add_number(static_cast<uint64_t>(buffer.dtype));
      add_number(buffer.shape.size());
      for (const int64_t length : buffer.shape) add_number(static_cast<uint64_t>(length));
    }
  }
  for (const std::string& name : layout_.tensor_names_) {
    const TensorLocation& location = layout_.tensors_.at(name);
    add_text(name);
    add_number(static_cast<uint64_t>(location.unit.value()));
    add_number(static_cast<uint64_t>(location.flat_parameter));
    add_number(static_cast<uint64_t>(location.index));
  }
  for (const std::vector<NamedCopy>* copies : {&layout_.emas_, &layout_.states_}) {
    add_number(copies->size());
    for (const NamedCopy& copy : *copies) {
      add_text(copy.name);
      add_number(static_cast<uint64_t>(copy.dtype));
    }
  }
  add_number(static_cast<uint64_t>(layout_.gather_slots_));
  add_number(static_cast<uint64_t>(layout_.gradient_slots_));
  add_number(spec_.update_protection() == v1::UPDATE_PROTECTION_NONE ? 0 : 1);
  layout_.fingerprint_ = hash;
}

}  // namespace holdfast
