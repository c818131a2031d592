#include "server/logging/line_formatter.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/logging/json_text.h"
#include "server/logging/log_payload.h"

namespace holdfast {
namespace {

struct Field {
  std::string_view key;
  std::string_view value;
  bool is_number = false;
};

// Cuts the next field off `payload`, which begins with kFieldMark.
Field TakeField(std::string_view& payload) {
  payload.remove_prefix(1);
  const size_t end = std::min(payload.find(kFieldMark), payload.size());
  const std::string_view pair = payload.substr(0, end);
  payload.remove_prefix(end);
  const size_t mark = std::min(pair.find_first_of(std::string{kTextMark, kNumberMark}), pair.size());
  const std::string_view value = pair.substr(std::min(mark + 1, pair.size()));
  return {.key = pair.substr(0, mark), .value = value, .is_number = mark < pair.size() && pair[mark] == kNumberMark};
}

std::string_view LevelName(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::info:
      return "info";
    case spdlog::level::warn:
      return "warning";
    default:
      return "error";
  }
}

std::string TimeText(spdlog::log_clock::time_point time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(time), absl::UTCTimeZone());
}

// A value with anything in it that would end it early is quoted.
std::string TextValue(std::string_view value) {
  const std::string escaped = EscapeJson(value);
  if (!value.empty() && escaped == value && value.find_first_of(" =") == std::string_view::npos) return escaped;
  return absl::StrCat("\"", escaped, "\"");
}

// A person reads it: quotes and backslashes stay as they are, and what breaks lines or terminals is escaped.
std::string TextMessage(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    const size_t plain = std::min(message.find_first_of("\"\\"), message.size());
    text.append(EscapeJson(message.substr(0, plain)));
    if (plain < message.size()) text.push_back(message[plain]);
    message.remove_prefix(std::min(plain + 1, message.size()));
  }
  return text;
}

std::string TextLine(const spdlog::details::log_msg& message, std::string_view text, std::string_view fields) {
  const char initial = absl::ascii_toupper(static_cast<unsigned char>(LevelName(message.level).front()));
  std::string line = absl::StrCat(TimeText(message.time), " ", std::string(1, initial), " ", TextMessage(text));
  while (!fields.empty()) {
    const Field field = TakeField(fields);
    absl::StrAppend(&line, " ", std::string(field.key), "=", TextValue(field.value));
  }
  return line;
}

std::string JsonLine(const spdlog::details::log_msg& message, std::string_view text, std::string_view fields) {
  std::string line = absl::StrCat(R"({"time":")", TimeText(message.time), R"(","level":")",
                                  std::string(LevelName(message.level)), R"(","message":")", EscapeJson(text), "\"");
  while (!fields.empty()) {
    const Field field = TakeField(fields);
    const char* quote = field.is_number ? "" : "\"";
    absl::StrAppend(&line, ",\"", EscapeJson(field.key), "\":", quote, EscapeJson(field.value), quote);
  }
  return line + "}";
}

}  // namespace

void LineFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  const std::string_view payload(message.payload.data(), message.payload.size());
  const size_t text_bytes = std::min(payload.find(kFieldMark), payload.size());
  const std::string_view text = payload.substr(0, text_bytes);
  const std::string_view fields = payload.substr(text_bytes);
  const std::string formatted =
      (format_ == v1::LOG_FORMAT_JSON ? JsonLine(message, text, fields) : TextLine(message, text, fields)) + "\n";
  line.append(formatted.data(), formatted.data() + formatted.size());
}

}  // namespace holdfast
