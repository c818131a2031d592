#include "common/quoted.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

constexpr size_t kMaxShownBytes = 128;

// True for the second and later bytes of a UTF-8 character.
bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::string_view Beginning(std::string_view text) {
  if (text.size() <= kMaxShownBytes) return text;
  size_t end = kMaxShownBytes;
  // A character has at most four bytes; what has more of them in a row is no text, and may be cut anywhere.
  while (end > kMaxShownBytes - 4 && IsContinuation(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace

std::string Shortened(std::string_view text) {
  const std::string_view beginning = Beginning(text);
  return absl::StrCat(absl::Utf8SafeCEscape(std::string(beginning)), beginning.size() < text.size() ? "…" : "");
}

std::string Quoted(std::string_view text) {
  const std::string quoted = absl::StrCat("'", Shortened(text), "'");
  return text.size() > kMaxShownBytes ? absl::StrCat(quoted, " (", text.size(), " bytes)") : quoted;
}

}  // namespace holdfast
