#include "server/collectives/collectives.h"

namespace holdfast {

double GradientPredivideFactor(int32_t world) {
  int32_t factor = 1;
  while (world % factor == 0 && world / factor > factor) factor *= 2;
  return factor;
}

}  // namespace holdfast
