#include "server/device/cpu/kernels/kernels.inc"

namespace holdfast {

const Kernels& BaselineKernels() { return kKernels; }

}  // namespace holdfast
