// Names as an error message can show them.
#ifndef HOLDFAST_COMMON_QUOTED_H_
#define HOLDFAST_COMMON_QUOTED_H_

#include <string>
#include <string_view>

namespace holdfast {

// At most `text`'s first 128 bytes, so that an answer never carries a stranger's megabytes: "…" if it was cut, whole
// UTF-8 characters, control characters escaped.
std::string Shortened(std::string_view text);

// The same in single quotes, with the number of bytes behind it if it was cut: "'abc…' (2000 bytes)".
std::string Quoted(std::string_view text);

}  // namespace holdfast

#endif  // HOLDFAST_COMMON_QUOTED_H_
