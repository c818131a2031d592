// How LogEvent's fields travel through spdlog, which knows only text, to the formatter.
#ifndef HOLDFAST_SERVER_LOGGING_LOG_PAYLOAD_H_
#define HOLDFAST_SERVER_LOGGING_LOG_PAYLOAD_H_

namespace holdfast {

// The payload of a line with fields is the message, then for each field kFieldMark, the key, kTextMark or kNumberMark,
// and the value. These are ASCII's own separators; where they occur in a message or a value they become spaces.
inline constexpr char kFieldMark = '\x1e';
inline constexpr char kTextMark = '\x1f';
inline constexpr char kNumberMark = '\x1d';

inline constexpr bool IsPayloadMark(char c) { return c == kFieldMark || c == kTextMark || c == kNumberMark; }

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOGGING_LOG_PAYLOAD_H_
