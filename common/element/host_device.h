// Element functions: arithmetic on one element, written once for the CPU's loops and for CUDA kernels.
#ifndef HOLDFAST_COMMON_ELEMENT_HOST_DEVICE_H_
#define HOLDFAST_COMMON_ELEMENT_HOST_DEVICE_H_

#include <cstring>

// Begins every element function. They are always inlined, in debug builds too: the CPU's kernels are compiled several
// times for different instruction sets, and no copy of a function made for one may be linked into another.
#if defined(__CUDACC__)
#define HOLDFAST_ELEMENT __host__ __device__ __forceinline__
#else
#define HOLDFAST_ELEMENT [[gnu::always_inline]] inline
#endif

namespace holdfast::element {

// std::bit_cast, which device code compiled as C++17 has not.
template <typename To, typename From>
HOLDFAST_ELEMENT To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_HOST_DEVICE_H_
