// The steps of a gradient reduction, for one element.
#ifndef HOLDFAST_COMMON_ELEMENT_REDUCE_H_
#define HOLDFAST_COMMON_ELEMENT_REDUCE_H_

#include "common/element/convert.h"
#include "common/element/host_device.h"

namespace holdfast::element {

// `value` as T would hold it.
template <typename T, typename C>
HOLDFAST_ELEMENT C RoundedTo(C value) {
  return static_cast<C>(Widen(Narrow<T>(value)));
}

// existing + value, added in Compute<T> and rounded once.
template <typename T>
HOLDFAST_ELEMENT T Accumulate(T existing, T value) {
  return Narrow<T>(Widen(existing) + Widen(value));
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_REDUCE_H_
