#include "common/glob.h"

namespace holdfast {
namespace {

bool MatchesByte(char text, char glob) { return glob == '?' || glob == text; }

}  // namespace

bool MatchesGlob(std::string_view text, std::string_view glob) {
  int64_t steps_left = 0;
  return MatchesGlob(text, glob, steps_left);
}

bool MatchesGlob(std::string_view text, std::string_view glob, int64_t& steps_left) {
  // What follows the last '*' can only be the end of the text: most names fail there, at the first byte.
  while (!glob.empty() && glob.back() != '*') {
    --steps_left;
    if (text.empty() || !MatchesByte(text.back(), glob.back())) return false;
    text.remove_suffix(1);
    glob.remove_suffix(1);
  }
  // No '*' is in it: all of it has been held against the end of the text.
  if (glob.empty()) return text.empty();

  size_t t = 0;
  size_t g = 0;
  // Where to go on if what follows the last '*' does not match: one byte further. No more than one is remembered, as
  // what an earlier '*' could take, a later one can.
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    --steps_left;
    // The last byte is a '*', so that g is in range here, and the rest of the text is its.
    if (glob[g] == '*') {
      if (g + 1 == glob.size()) return true;
      star = g++;
      star_text = t;
    } else if (MatchesByte(text[t], glob[g])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

bool IsLiteral(std::string_view glob) { return glob.find_first_of("*?") == std::string_view::npos; }

}  // namespace holdfast
