#include "server/core/ema_schedule.h"

#include <algorithm>
#include <cmath>

namespace holdfast {

bool UpdatesAt(const v1::EmaSpec& spec, Step step) {
  return step.value() % std::max<uint64_t>(spec.update_every(), 1) == 0;
}

double DecayAt(const v1::EmaSpec& spec, Step step) {
  const double t = static_cast<double>(step.value());
  switch (spec.schedule_case()) {
    case v1::EmaSpec::kConstant:
      return spec.constant().decay();
    case v1::EmaSpec::kWarmup:
      return std::min(spec.warmup().decay(), (1 + t) / (10 + t));
    case v1::EmaSpec::kPowerFunction: {
      const v1::PowerFunctionDecay& power = spec.power_function();
      const double gamma =
          power.width_case() == v1::PowerFunctionDecay::kGamma ? power.gamma() : GammaOfSigmaRel(power.sigma_rel());
      return std::pow(1 - 1 / t, gamma + 1);
    }
    case v1::EmaSpec::SCHEDULE_NOT_SET:
      break;
  }
  return 0;
}

double GammaOfSigmaRel(double sigma_rel) {
  // The variance falls from 1/12 at γ = 0 to 0, so bisection can't miss; it ends when the interval can't be halved.
  const double variance = sigma_rel * sigma_rel;
  double low = 0;
  double high = 1 / variance;
  while (true) {
    const double gamma = low + (high - low) / 2;
    if (gamma <= low || gamma >= high) return gamma;
    const double at_gamma = (gamma + 1) / ((gamma + 2) * (gamma + 2) * (gamma + 3));
    (at_gamma > variance ? low : high) = gamma;
  }
}

}  // namespace holdfast
