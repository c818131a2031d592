// Which vector instructions the CPU's kernels use.
#ifndef HOLDFAST_SERVER_DEVICE_CPU_INSTRUCTION_SET_H_
#define HOLDFAST_SERVER_DEVICE_CPU_INSTRUCTION_SET_H_

#include <string_view>
#include <vector>

namespace holdfast {

enum class InstructionSet {
  // What every processor of the architecture has.
  kBaseline,
  // x86-64 with AVX2 and F16C.
  kAvx2,
  // x86-64 with AVX-512 F, BW, DQ and VL.
  kAvx512,
};

// "baseline", "avx2", "avx512".
std::string_view Name(InstructionSet instruction_set);

// What this machine can run, the best last.
std::vector<InstructionSet> SupportedInstructionSets();

inline InstructionSet BestInstructionSet() { return SupportedInstructionSets().back(); }

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_DEVICE_CPU_INSTRUCTION_SET_H_
