// The loops over elements, compiled once for each instruction set.
#ifndef HOLDFAST_SERVER_DEVICE_CPU_KERNELS_KERNELS_H_
#define HOLDFAST_SERVER_DEVICE_CPU_KERNELS_KERNELS_H_

#include <cstdint>

// Included by sources that are compiled for more than the baseline: nothing here, or included from here, may bring
// inline functions that such a source would emit, and the linker then give to everyone.

namespace holdfast {

// Indices into the tables below: the arithmetic dtypes.
enum class ElementType : int { kFloat32 = 0, kBFloat16 = 1, kFloat16 = 2, kFloat64 = 3 };
inline constexpr int kNumElementTypes = 4;

struct EmaArguments {
  const void* parameter;
  void* ema;
  int64_t num_elements;
  double decay;
  uint64_t seed;
  uint64_t first_element;
};

// One piece of one rank's shard, and where it goes.
struct GatherArguments {
  const void* shard;
  // num_outs addresses; none is null.
  void* const* outs;
  int32_t num_outs;
  int64_t num_elements;
  // Write past the caches. For outputs that are too large to stay in them: what is written need not be read first.
  bool streaming;
};

// The same piece of one shard of all ranks' gradients, and where its mean goes.
struct ReduceArguments {
  // num_replicate × num_shard addresses, in rank order.
  const void* const* gradients;
  int32_t num_replicate;
  int32_t num_shard;
  // num_replicate addresses: the piece in each replica's shard.
  void* const* shards;
  int64_t num_elements;
  double predivide;
  double postdivide;
  bool accumulate;
  // As GatherArguments::streaming; not with accumulate, which has just read what it writes.
  bool streaming;
};

// All kernels may be called from several threads at once, and give the same bits for every instruction set. Addresses
// are aligned for their elements; inputs and outputs do not overlap.
struct Kernels {
  void (*convert[kNumElementTypes][kNumElementTypes])(const void* from, void* to, int64_t num_elements);
  // [parameter][ema]; null for a float16 ema.
  void (*ema[kNumElementTypes][kNumElementTypes])(const EmaArguments& arguments);
  // [from][to]
  void (*gather[kNumElementTypes][kNumElementTypes])(const GatherArguments& arguments);
  // num_elements counts bytes.
  void (*gather_bytes)(const GatherArguments& arguments);
  // [reduce][master]
  void (*reduce[kNumElementTypes][kNumElementTypes])(const ReduceArguments& arguments);
};

// Each is built only where the compiler can.
const Kernels& BaselineKernels();
const Kernels& Avx2Kernels();
const Kernels& Avx512Kernels();

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_KERNELS_KERNELS_H_
