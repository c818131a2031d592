// The daemon's log: lines of text, or of JSON, on standard error.
#ifndef HOLDFAST_SERVER_LOGGING_LOGGER_H_
#define HOLDFAST_SERVER_LOGGING_LOGGER_H_

#include <spdlog/logger.h>

#include <memory>

#include "holdfast/v1/config.pb.h"

namespace holdfast {

// A logger that writes to standard error and flushes every line. It is passed to whoever logs; no global one is set.
// Unspecified values mean TEXT and INFO. Thread-safe.
std::shared_ptr<spdlog::logger> CreateLogger(v1::LogFormat format, v1::LogLevel level);

// The same on another sink.
std::shared_ptr<spdlog::logger> CreateLogger(v1::LogFormat format, v1::LogLevel level, spdlog::sink_ptr sink);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOGGING_LOGGER_H_
