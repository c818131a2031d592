#include "server/device/cpu/kernels/kernels.inc"

namespace holdfast {

const Kernels& Avx2Kernels() { return kKernels; }

}  // namespace holdfast
