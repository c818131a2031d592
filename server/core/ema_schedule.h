// The decay of an EMA copy at a step.
#ifndef HOLDFAST_SERVER_CORE_EMA_SCHEDULE_H_
#define HOLDFAST_SERVER_CORE_EMA_SCHEDULE_H_

#include "common/ids.h"
#include "holdfast/v1/model.pb.h"

namespace holdfast {

// True if the copy is updated at `step` (update_every).
bool UpdatesAt(const v1::EmaSpec& spec, Step step);

// The decay of an update at `step` ≥ 1; `spec` has been validated. Formulas: v1::ConstantDecay, WarmupDecay,
// PowerFunctionDecay.
double DecayAt(const v1::EmaSpec& spec, Step step);

// The exponent whose power-function profile has this relative standard deviation, 0 < sigma_rel < 1/√12: solves
// σ² = (γ + 1) / ((γ + 2)² (γ + 3)), Karras et al., 2024, arXiv:2312.02696, appendix C.
double GammaOfSigmaRel(double sigma_rel);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CORE_EMA_SCHEDULE_H_
