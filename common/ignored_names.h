// The parameters and buffers that a trainer keeps to itself.
#ifndef HOLDFAST_COMMON_IGNORED_NAMES_H_
#define HOLDFAST_COMMON_IGNORED_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace holdfast {

// ModelSpec.ignored_parameters, ready to be asked about many names. Not thread-safe.
class IgnoredNames {
 public:
  // What one spec may cost: seconds. Millions of names and hundreds of ordinary globs stay far below; only globs made
  // for it, such as "*aaaa…b", come near.
  static constexpr int64_t kMaxSteps = int64_t{1} << 31;

  // `globs` must outlive it.
  explicit IgnoredNames(const google::protobuf::RepeatedPtrField<std::string>& globs, int64_t max_steps = kMaxSteps);

  // True if `name` matches any of them. INVALID_ARGUMENT once all names together took more than max_steps. Steps are
  // counted, not timed: a spec that one machine takes, every machine takes.
  absl::StatusOr<bool> Contains(const std::string& name);

 private:
  absl::flat_hash_set<std::string> literals_;
  std::vector<std::string_view> globs_;
  int64_t steps_left_;
};

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_IGNORED_NAMES_H_
