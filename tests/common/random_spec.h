// Valid specs by chance, with everything odd that there can be.
#ifndef HOLDFAST_TESTS_COMMON_RANDOM_SPEC_H_
#define HOLDFAST_TESTS_COMMON_RANDOM_SPEC_H_

#include <cstdint>
#include <random>
#include <string_view>

#include "holdfast/v1/model.pb.h"

namespace holdfast {

// A model of up to 5 units for `world` ranks, with any strategy, precision, EMAs, states and slots; 0-dim, zero-size,
// tied, frozen, integer and fp8 tensors. Each name that ends in kIgnoredEnding is ignored, and no other is.
v1::ModelSpec RandomSpec(std::mt19937_64& random, int32_t world);

inline constexpr std::string_view kIgnoredEnding = ".skip";

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_COMMON_RANDOM_SPEC_H_
