// What someone may have meant.
#ifndef HOLDFAST_SERVER_CONFIG_CLOSEST_NAME_H_
#define HOLDFAST_SERVER_CONFIG_CLOSEST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// The name that is the fewest insertions, deletions and replacements away from `name`; empty if all are so far away
// that a suggestion would not help.
std::string ClosestName(std::string_view name, const std::vector<std::string>& names);

// "; did you mean num_ranks?", or nothing.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_CONFIG_CLOSEST_NAME_H_
