// Writes one log line as text or JSON.
#ifndef HOLDFAST_SERVER_LOGGING_LINE_FORMATTER_H_
#define HOLDFAST_SERVER_LOGGING_LINE_FORMATTER_H_

#include <spdlog/formatter.h>

#include <memory>

#include "holdfast/v1/config.pb.h"

namespace holdfast {

// Text:  2026-12-01T08:15:30.123456Z I lease taken model=demo rank=2
// JSON:  {"time":"2026-12-01T08:15:30.123456Z","level":"info","message":"lease taken","model":"demo","rank":2}
// Whatever is logged stays on one line: control characters, and bytes that are not UTF-8, are escaped.
class LineFormatter final : public spdlog::formatter {
 public:
  explicit LineFormatter(v1::LogFormat format) : format_(format) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override;
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LineFormatter>(format_); }

 private:
  const v1::LogFormat format_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOGGING_LINE_FORMATTER_H_
