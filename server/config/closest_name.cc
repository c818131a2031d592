#include "server/config/closest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

// Levenshtein's distance, a row at a time.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string ClosestName(std::string_view name, const std::vector<std::string>& names) {
  std::string closest;
  // A third of it wrong is a slip; more is another word.
  size_t least = name.size() / 3 + 1;
  for (const std::string& candidate : names) {
    const size_t distance = Distance(name, candidate);
    if (distance <= least && (closest.empty() || distance < least)) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& names) {
  const std::string closest = ClosestName(name, names);
  return closest.empty() ? "" : absl::StrCat("; did you mean ", closest, "?");
}

}  // namespace holdfast
