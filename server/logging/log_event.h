// A log line with named values beside its text: what a person reads, and what a log store can search by.
#ifndef HOLDFAST_SERVER_LOGGING_LOG_EVENT_H_
#define HOLDFAST_SERVER_LOGGING_LOG_EVENT_H_

#include <spdlog/logger.h>

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace holdfast {

// One named value. `key` is a literal of lower-case letters and '_' other than time, level and message.
struct LogField {
  LogField(std::string_view key, std::string_view value) : key(key), value(value) {}
  LogField(std::string_view key, const char* value) : key(key), value(value) {}
  template <std::integral T>
  LogField(std::string_view key, T number) : key(key), value(std::to_string(number)), is_number(true) {}

  std::string_view key;
  std::string value;
  // Written without quotes in JSON.
  bool is_number = false;
};

// LogEvent(logger, spdlog::level::info, "lease taken", {{"model", name}, {"rank", rank.value()}}) is
// `... lease taken model=demo rank=2` as text, and {..., "message":"lease taken","model":"demo","rank":2} as JSON.
// Plain spdlog calls on the same logger are lines without fields. Thread-safe.
void LogEvent(spdlog::logger& logger, spdlog::level::level_enum level, std::string_view message,
              std::initializer_list<LogField> fields);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOGGING_LOG_EVENT_H_
