#include "server/logging/json_text.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace holdfast {
namespace {

bool IsContinuation(unsigned char c) { return (c & 0xC0) == 0x80; }

// Bytes of the valid UTF-8 character that begins `text`; 0 if none does.
size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t count = first >= 0xC2 && first <= 0xDF   ? 2
                       : first >= 0xE0 && first <= 0xEF ? 3
                       : first >= 0xF0 && first <= 0xF4 ? 4
                                                        : 0;
  if (count == 0 || text.size() < count) return 0;
  for (size_t i = 1; i < count; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) || (first == 0xF0 && byte(1) < 0x90) ||
      (first == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return count;
}

}  // namespace

std::string EscapeJson(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const char c = text.front();
    const size_t count = CharacterBytes(text);
    if (count == 0) {
      escaped.append("\xEF\xBF\xBD");
    } else if (c == '"' || c == '\\') {
      escaped.push_back('\\');
      escaped.push_back(c);
    } else if (c == '\n') {
      escaped.append("\\n");
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&escaped, "\\u%04x", static_cast<unsigned>(c));
    } else {
      escaped.append(text.substr(0, count));
    }
    text.remove_prefix(count == 0 ? 1 : count);
  }
  return escaped;
}

}  // namespace holdfast
