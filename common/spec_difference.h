// Where two model specs differ.
#ifndef HOLDFAST_COMMON_SPEC_DIFFERENCE_H_
#define HOLDFAST_COMMON_SPEC_DIFFERENCE_H_

#include <string>

#include "holdfast/v1/model.pb.h"

namespace holdfast {

// The first field that differs, in the order of the field numbers, with both values:
// "units[2].parameters[0].shape[1]: registered 64, asked 128"; empty if the specs are equal. Long values are shortened;
// of a message its name is shown, or that there is one. Compare ModelLayout::spec(), where defaults are filled in.
std::string FirstDifference(const v1::ModelSpec& registered, const v1::ModelSpec& asked);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_SPEC_DIFFERENCE_H_
