#include "common/shard_ranges.h"

#include <algorithm>

namespace holdfast {

std::vector<ShardRange> ShardRangesOf(const ParameterLayout& parameter, int64_t shard_elements) {
  std::vector<ShardRange> ranges;
  int64_t done = 0;
  while (done < parameter.num_elements) {
    const int64_t element = parameter.offset + done;
    const int64_t shard_begin = element % shard_elements;
    const int64_t count = std::min(parameter.num_elements - done, shard_elements - shard_begin);
    ranges.push_back({.shard = static_cast<int32_t>(element / shard_elements),
                      .shard_begin = shard_begin,
                      .parameter_begin = done,
                      .num_elements = count});
    done += count;
  }
  return ranges;
}

}  // namespace holdfast
