#include "server/device/cpu/kernels/kernels.inc"

namespace holdfast {

const Kernels& Avx512Kernels() { return kKernels; }

}  // namespace holdfast
