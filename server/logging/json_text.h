// Text that can stand in a JSON string.
#ifndef HOLDFAST_SERVER_LOGGING_JSON_TEXT_H_
#define HOLDFAST_SERVER_LOGGING_JSON_TEXT_H_

#include <string>
#include <string_view>

namespace holdfast {

// `text` with quotes, backslashes and control characters escaped as RFC 8259 asks; a byte that is not part of valid
// UTF-8 becomes U+FFFD. Without the quotes around it.
std::string EscapeJson(std::string_view text);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOGGING_JSON_TEXT_H_
