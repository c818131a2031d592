#include "client/gathered_unit.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/mapped_memory.h"
#include "client/tensor_view.h"

namespace holdfast {

GatheredUnit::GatheredUnit(std::shared_ptr<const MappedMemory> memory, UnitIndex unit, int32_t slot, bool hit)
    : memory_(std::move(memory)), unit_(unit), slot_(slot), hit_(hit) {}

const UnitLayout& GatheredUnit::layout() const { return memory_->layout().unit(unit_); }

at::Tensor GatheredUnit::flat(size_t flat_parameter) const {
  const FlatParameter& flat = layout().flat_parameters.at(flat_parameter);
  return ViewOf(memory_, memory_->GatherSlot(slot_) + flat.gather_offset, flat.param_dtype,
                {flat.padded_elements(memory_->layout().mesh().num_shard)});
}

at::Tensor GatheredUnit::parameter(size_t flat_parameter, size_t index) const {
  const FlatParameter& flat = layout().flat_parameters.at(flat_parameter);
  const ParameterLayout& parameter = flat.parameters.at(index);
  const int64_t offset = flat.gather_offset + parameter.offset * SizeOf(flat.param_dtype);
  return ViewOf(memory_, memory_->GatherSlot(slot_) + offset, flat.param_dtype, parameter.shape);
}

absl::StatusOr<at::Tensor> GatheredUnit::Find(std::string_view name) const {
  absl::StatusOr<TensorLocation> location = memory_->layout().FindTensor(name);
  if (!location.ok()) return location.status();
  if (location->unit != unit_ || location->flat_parameter < 0) {
    return absl::NotFoundError(absl::StrCat("unit '", layout().name, "' has no parameter '", std::string(name),
                                            "'; it is ", location->flat_parameter < 0 ? "a buffer of" : "in", " unit '",
                                            memory_->layout().unit(location->unit).name, "'"));
  }
  return parameter(static_cast<size_t>(location->flat_parameter), static_cast<size_t>(location->index));
}

}  // namespace holdfast
