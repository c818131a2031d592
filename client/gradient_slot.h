// The place for one unit's gradient on this rank, before it is reduced.
#ifndef HOLDFAST_CLIENT_GRADIENT_SLOT_H_
#define HOLDFAST_CLIENT_GRADIENT_SLOT_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/gradient_claim.h"
#include "common/ids.h"
#include "common/layout.h"

namespace holdfast {

class MappedMemory;

// Held from Worker::AcquireGradient until it is moved into Worker::ReduceScatter; destroyed before that, it gives its
// slot back unused. Its tensors are writable views of the slot, in the reduce dtype. What they hold at first is left
// over from an earlier gradient: write every parameter, or call Zero. The padding behind them is zero already.
class GradientSlot {
 public:
  GradientSlot(std::shared_ptr<const MappedMemory> memory, GradientClaim claim);

  UnitIndex unit() const { return claim_.unit(); }
  const UnitLayout& layout() const;

  // The gradient of a whole flat parameter, 1-D, padding included. Undefined if it is frozen.
  at::Tensor flat(size_t flat_parameter) const;
  // The gradient of one parameter, with its shape: layout().flat_parameters[flat_parameter].parameters[index].
  // Undefined if it is frozen.
  at::Tensor parameter(size_t flat_parameter, size_t index) const;
  // By name; an alias leads to what it shares. NOT_FOUND if this unit has no such parameter, or it is frozen.
  absl::StatusOr<at::Tensor> Find(std::string_view name) const;
  // Zeroes all of it, for a unit some of whose parameters take no part.
  void Zero();

  // For Worker::ReduceScatter.
  GradientClaim TakeClaim() && { return std::move(claim_); }

 private:
  std::shared_ptr<const MappedMemory> memory_;
  GradientClaim claim_;
};

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_GRADIENT_SLOT_H_
