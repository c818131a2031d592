#include "server/device/cpu/kernels/dispatch.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace holdfast {

absl::StatusOr<const Kernels*> KernelsFor(InstructionSet instruction_set) {
  const std::vector<InstructionSet> supported = SupportedInstructionSets();
  if (std::find(supported.begin(), supported.end(), instruction_set) == supported.end()) {
    return absl::FailedPreconditionError(absl::StrCat("This machine has no ", std::string(Name(instruction_set)),
                                                      " instructions; the best it has is ",
                                                      std::string(Name(supported.back()))));
  }
  switch (instruction_set) {
    case InstructionSet::kBaseline:
      break;
#if defined(__x86_64__)
    case InstructionSet::kAvx2:
      return &Avx2Kernels();
    case InstructionSet::kAvx512:
      return &Avx512Kernels();
#else
    default:
      break;
#endif
  }
  return &BaselineKernels();
}

ElementType ElementTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBFloat16:
      return ElementType::kBFloat16;
    case DType::kFloat16:
      return ElementType::kFloat16;
    case DType::kFloat64:
      return ElementType::kFloat64;
    default:
      return ElementType::kFloat32;
  }
}

}  // namespace holdfast
