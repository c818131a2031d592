// Tells one layout from another by a number.
#ifndef HOLDFAST_COMMON_LAYOUT_FINGERPRINT_H_
#define HOLDFAST_COMMON_LAYOUT_FINGERPRINT_H_

#include <cstdint>

#include "common/layout.h"

namespace holdfast {

// See ModelLayout::fingerprint(). 64-bit FNV-1a over names, shapes, dtypes, places and sizes, in one fixed order: proof
// against mistakes and stale maps, not against someone who looks for a collision.
uint64_t FingerprintOf(const ModelLayout& layout);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_LAYOUT_FINGERPRINT_H_
