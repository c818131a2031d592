#include "client/gradient_slot.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/mapped_memory.h"
#include "client/tensor_view.h"

namespace holdfast {

GradientSlot::GradientSlot(std::shared_ptr<const MappedMemory> memory, GradientClaim claim)
    : memory_(std::move(memory)), claim_(std::move(claim)) {}

const UnitLayout& GradientSlot::layout() const { return memory_->layout().unit(unit()); }

at::Tensor GradientSlot::flat(size_t flat_parameter) const {
  const FlatParameter& flat = layout().flat_parameters.at(flat_parameter);
  if (!flat.trainable) return at::Tensor();
  return ViewOf(memory_, memory_->GradientSlot(claim_.slot()) + flat.gradient_slot_offset, flat.reduce_dtype,
                {flat.padded_elements(memory_->layout().mesh().num_shard)});
}

at::Tensor GradientSlot::parameter(size_t flat_parameter, size_t index) const {
  const FlatParameter& flat = layout().flat_parameters.at(flat_parameter);
  if (!flat.trainable) return at::Tensor();
  const ParameterLayout& parameter = flat.parameters.at(index);
  const int64_t offset = flat.gradient_slot_offset + parameter.offset * SizeOf(flat.reduce_dtype);
  return ViewOf(memory_, memory_->GradientSlot(claim_.slot()) + offset, flat.reduce_dtype, parameter.shape);
}

absl::StatusOr<at::Tensor> GradientSlot::Find(std::string_view name) const {
  absl::StatusOr<TensorLocation> location = memory_->layout().FindTensor(name);
  if (!location.ok()) return location.status();
  if (location->unit != unit() || location->flat_parameter < 0 ||
      !layout().flat_parameters[static_cast<size_t>(location->flat_parameter)].trainable) {
    return absl::NotFoundError(absl::StrCat("'", std::string(name), "' is no trainable parameter of unit '",
                                            layout().name, "': it has no gradient here"));
  }
  return parameter(static_cast<size_t>(location->flat_parameter), static_cast<size_t>(location->index));
}

void GradientSlot::Zero() {
  std::memset(memory_->GradientSlot(claim_.slot()), 0, static_cast<size_t>(layout().gradient_bytes));
}

}  // namespace holdfast
