// Copies whole tensors to one rank's part of the model.
#ifndef HOLDFAST_CLIENT_INITIAL_VALUES_H_
#define HOLDFAST_CLIENT_INITIAL_VALUES_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/shards.h"
#include "common/ids.h"
#include "common/layout.h"

namespace holdfast {

using TensorsByName = absl::flat_hash_map<std::string, at::Tensor>;
using TensorSource = absl::FunctionRef<absl::StatusOr<at::Tensor>(std::string_view name)>;

// OK if `values` has a fitting tensor for every parameter (but tied names) and buffer, and nothing else but tied and
// ignored names. INVALID_ARGUMENT names what is wrong.
absl::Status CheckInitialValues(const ModelLayout& layout, const TensorsByName& values);

// Asks for every parameter, tied ones once, and every buffer in registration order, and copies to `shards`, those of
// `rank`, what belongs there, converted to the dtype that is kept. The padding becomes zero.
absl::Status CopyInitialValues(const ModelLayout& layout, Rank rank, const std::vector<UnitShards>& shards,
                               TensorSource value);

}  // namespace holdfast

#endif  // HOLDFAST_CLIENT_INITIAL_VALUES_H_
