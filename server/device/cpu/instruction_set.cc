#include "server/device/cpu/instruction_set.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace holdfast {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports also asks whether the kernel saves the registers; not every compiler's knows "f16c".
bool HasAvx2() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool HasAvx2() { return false; }
bool HasAvx512() { return false; }
#endif

}  // namespace

std::string_view Name(InstructionSet instruction_set) {
  switch (instruction_set) {
    case InstructionSet::kBaseline:
      return "baseline";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "unknown";
}

std::vector<InstructionSet> SupportedInstructionSets() {
  std::vector<InstructionSet> sets = {InstructionSet::kBaseline};
  if (HasAvx2()) sets.push_back(InstructionSet::kAvx2);
  if (HasAvx2() && HasAvx512()) sets.push_back(InstructionSet::kAvx512);
  return sets;
}

}  // namespace holdfast
