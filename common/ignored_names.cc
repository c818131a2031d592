#include "common/ignored_names.h"

#include "common/glob.h"
#include "common/spec_validation.h"

namespace holdfast {

IgnoredNames::IgnoredNames(const google::protobuf::RepeatedPtrField<std::string>& globs, int64_t max_steps)
    : steps_left_(max_steps) {
  for (const std::string& glob : globs) {
    if (IsLiteral(glob)) {
      literals_.insert(glob);
    } else {
      globs_.push_back(glob);
    }
  }
}

absl::StatusOr<bool> IgnoredNames::Contains(const std::string& name) {
  if (literals_.contains(name)) return true;
  for (const std::string_view glob : globs_) {
    if (MatchesGlob(name, glob, steps_left_)) return true;
    if (steps_left_ < 0) {
      return InvalidSpec("spec.ignored_parameters", "finding what they match takes too long",
                         "use fewer, shorter globs or whole names");
    }
  }
  return false;
}

}  // namespace holdfast
