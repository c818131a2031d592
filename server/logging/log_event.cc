#include "server/logging/log_event.h"

#include "server/logging/log_payload.h"

namespace holdfast {
namespace {

void AppendWithoutMarks(std::string_view text, std::string& payload) {
  for (const char c : text) payload.push_back(IsPayloadMark(c) ? ' ' : c);
}

}  // namespace

void LogEvent(spdlog::logger& logger, spdlog::level::level_enum level, std::string_view message,
              std::initializer_list<LogField> fields) {
  if (!logger.should_log(level)) return;
  std::string payload;
  AppendWithoutMarks(message, payload);
  for (const LogField& field : fields) {
    payload.push_back(kFieldMark);
    payload.append(field.key);
    payload.push_back(field.is_number ? kNumberMark : kTextMark);
    AppendWithoutMarks(field.value, payload);
  }
  logger.log(level, spdlog::string_view_t(payload.data(), payload.size()));
}

}  // namespace holdfast
