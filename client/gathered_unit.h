// A unit's whole parameters, in a gather slot.
#ifndef HOLDFAST_CLIENT_GATHERED_UNIT_H_
#define HOLDFAST_CLIENT_GATHERED_UNIT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/layout.h"

namespace holdfast {

class MappedMemory;

// What Worker::Gather brings. Its tensors are views of the slot, in the param dtype: nothing is copied. They are
// mapped for READING ONLY: an in-place operation on one is a segmentation fault; autograd on them is fine
// (`unit.parameter(0, 0).detach().requires_grad_()`).
//
// The contents hold until the unit is released, the step is committed, or the worker rejoins, whichever is first. The
// memory itself stays mapped as long as any view lives, but then shows whatever the slot holds next.
// Cheap to copy; thread-safe.
class GatheredUnit {
 public:
  GatheredUnit(std::shared_ptr<const MappedMemory> memory, UnitIndex unit, int32_t slot, bool hit);

  UnitIndex unit() const { return unit_; }
  int32_t slot() const { return slot_; }
  // It was there already: no byte was moved for it.
  bool hit() const { return hit_; }
  const UnitLayout& layout() const;

  // The whole flat parameter, 1-D, padding included.
  at::Tensor flat(size_t flat_parameter) const;
  // One parameter, with its shape: layout().flat_parameters[flat_parameter].parameters[index].
  at::Tensor parameter(size_t flat_parameter, size_t index) const;
  // By name; an alias leads to what it shares. NOT_FOUND if this unit has no such parameter.
  absl::StatusOr<at::Tensor> Find(std::string_view name) const;

 private:
  std::shared_ptr<const MappedMemory> memory_;
  UnitIndex unit_;
  int32_t slot_;
  bool hit_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_GATHERED_UNIT_H_
