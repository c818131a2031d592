// The exponential moving average of one element.
#ifndef HOLDFAST_COMMON_ELEMENT_EMA_H_
#define HOLDFAST_COMMON_ELEMENT_EMA_H_

#include "common/element/host_device.h"

namespace holdfast::element {

template <typename C>
struct EmaFactors {
  C decay;
  C complement;
};

// The complement is taken from the rounded decay, and so is exact for a decay of at least 0.5. 1 − 0.9999 rounded to
// float32 on its own, as torch._foreach_add_'s alpha is, adds up with the rounded 0.9999 to 1 − 1.7e-8, and an average
// of ten thousand steps then settles 1.7e-4 beside a constant parameter.
template <typename C>
HOLDFAST_ELEMENT EmaFactors<C> MakeEmaFactors(double decay) {
  const C rounded = static_cast<C>(decay);
  return EmaFactors<C>{rounded, C{1} - rounded};
}

template <typename C>
HOLDFAST_ELEMENT C Ema(C ema, C parameter, EmaFactors<C> factors) {
  return factors.decay * ema + factors.complement * parameter;
}

}  // namespace holdfast::element

#endif  // HOLDFAST_COMMON_ELEMENT_EMA_H_
