// Which parts of which shards a parameter is made of.
#ifndef HOLDFAST_COMMON_SHARD_RANGES_H_
#define HOLDFAST_COMMON_SHARD_RANGES_H_

#include <cstdint>
#include <vector>

#include "common/layout.h"

namespace holdfast {

// A run of elements that one shard holds of a parameter. All counted in elements.
struct ShardRange {
  int32_t shard = 0;
  // First element, in the shard.
  int64_t shard_begin = 0;
  // First element, in the parameter.
  int64_t parameter_begin = 0;
  int64_t num_elements = 0;
};

// In the order of the elements; empty for a parameter of none. `shard_elements` is the flat parameter's.
std::vector<ShardRange> ShardRangesOf(const ParameterLayout& parameter, int64_t shard_elements);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_SHARD_RANGES_H_
