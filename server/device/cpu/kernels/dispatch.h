// From an instruction set and dtypes to a kernel.
#ifndef HOLDFAST_SERVER_DEVICE_CPU_KERNELS_DISPATCH_H_
#define HOLDFAST_SERVER_DEVICE_CPU_KERNELS_DISPATCH_H_

#include "absl/status/statusor.h"
#include "common/dtype.h"
#include "server/device/cpu/instruction_set.h"
#include "server/device/cpu/kernels/kernels.h"

namespace holdfast {

// FAILED_PRECONDITION if this machine, or this build, cannot run it. The kernels live as long as the program.
absl::StatusOr<const Kernels*> KernelsFor(InstructionSet instruction_set);

// `dtype` is arithmetic.
ElementType ElementTypeOf(DType dtype);

// The table's entry for a pair of arithmetic dtypes.
template <typename Kernel>
Kernel* Select(Kernel* const (&table)[kNumElementTypes][kNumElementTypes], DType first, DType second) {
  return table[static_cast<int>(ElementTypeOf(first))][static_cast<int>(ElementTypeOf(second))];
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_KERNELS_DISPATCH_H_
