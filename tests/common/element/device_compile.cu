// The element functions as device code: grid-stride kernels over them, compiled for every architecture wherever nvcc
// is. That they compile is the test.
#include <cstdint>

#include "common/element/convert.h"
#include "common/element/ema.h"
#include "common/element/random_bits.h"
#include "common/element/reduce.h"
#include "common/element/stochastic_rounding.h"

namespace holdfast {
namespace {

using element::BFloat16;
using element::Compute;
using element::Float16;

__device__ int64_t FirstElement() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ int64_t Stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

template <typename From, typename To>
__global__ void ConvertKernel(const From* from, To* to, int64_t num_elements) {
  for (int64_t i = FirstElement(); i < num_elements; i += Stride()) to[i] = element::Convert<To>(from[i]);
}

template <typename P, typename E>
__global__ void EmaKernel(const P* parameter, E* ema, int64_t num_elements, double decay) {
  using C = Compute<P, E>;
  const auto factors = element::MakeEmaFactors<C>(decay);
  for (int64_t i = FirstElement(); i < num_elements; i += Stride()) {
    ema[i] = element::Narrow<E>(element::Ema<C>(element::Widen(ema[i]), element::Widen(parameter[i]), factors));
  }
}

template <typename P>
__global__ void StochasticEmaKernel(const P* parameter, BFloat16* ema, int64_t num_elements, double decay,
                                    uint64_t seed, uint64_t first_element) {
  using C = Compute<P, BFloat16>;
  const auto factors = element::MakeEmaFactors<C>(decay);
  for (int64_t i = FirstElement(); i < num_elements; i += Stride()) {
    const C average = element::Ema<C>(element::Widen(ema[i]), element::Widen(parameter[i]), factors);
    const uint32_t random = element::RandomBits(seed, first_element + static_cast<uint64_t>(i));
    ema[i] = element::RoundStochastically(static_cast<float>(average), random);
  }
}

template <typename T>
__global__ void AccumulateKernel(const T* values, T* sums, int64_t num_elements) {
  using C = Compute<T>;
  for (int64_t i = FirstElement(); i < num_elements; i += Stride()) {
    const C half = element::RoundedTo<T>(static_cast<C>(element::Widen(values[i])) * C{0.5});
    sums[i] = element::Accumulate(sums[i], element::Narrow<T>(half));
  }
}

// Brings every instance into being.
template <typename T>
void LaunchAll(const void* from, void* to, int64_t num_elements) {
  const T* source = static_cast<const T*>(from);
  ConvertKernel<<<1, 256>>>(source, static_cast<float*>(to), num_elements);
  ConvertKernel<<<1, 256>>>(source, static_cast<BFloat16*>(to), num_elements);
  ConvertKernel<<<1, 256>>>(source, static_cast<Float16*>(to), num_elements);
  ConvertKernel<<<1, 256>>>(source, static_cast<double*>(to), num_elements);
  EmaKernel<<<1, 256>>>(source, static_cast<float*>(to), num_elements, 0.9999);
  EmaKernel<<<1, 256>>>(source, static_cast<double*>(to), num_elements, 0.9999);
  StochasticEmaKernel<<<1, 256>>>(source, static_cast<BFloat16*>(to), num_elements, 0.9999, 1, 0);
  AccumulateKernel<<<1, 256>>>(source, static_cast<T*>(to), num_elements);
}

}  // namespace

void LaunchElementKernels(const void* from, void* to, int64_t num_elements) {
  LaunchAll<float>(from, to, num_elements);
  LaunchAll<BFloat16>(from, to, num_elements);
  LaunchAll<Float16>(from, to, num_elements);
  LaunchAll<double>(from, to, num_elements);
}

}  // namespace holdfast
