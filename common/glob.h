// Names by pattern.
#ifndef HOLDFAST_COMMON_GLOB_H_
#define HOLDFAST_COMMON_GLOB_H_

#include <cstdint>
#include <string_view>

namespace holdfast {

// True if `text` matches `glob`: '*' any run of bytes, '?' one byte, all else itself. Takes at most
// (text.size() + 1) · (glob.size() + 1) steps.
bool MatchesGlob(std::string_view text, std::string_view glob);

// The same, and takes the steps that it needed from `steps_left`, which may become negative: for whoever holds many
// names of a stranger's against many globs.
bool MatchesGlob(std::string_view text, std::string_view glob, int64_t& steps_left);

// True if `glob` has no '*' and no '?': it matches itself only.
bool IsLiteral(std::string_view glob);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_GLOB_H_
