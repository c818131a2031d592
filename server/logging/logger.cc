#include "server/logging/logger.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <utility>

#include "server/logging/line_formatter.h"

namespace holdfast {
namespace {

spdlog::level::level_enum ToSpdlog(v1::LogLevel level) {
  switch (level) {
    case v1::LOG_LEVEL_DEBUG:
      return spdlog::level::debug;
    case v1::LOG_LEVEL_WARNING:
      return spdlog::level::warn;
    case v1::LOG_LEVEL_ERROR:
      return spdlog::level::err;
    default:
      return spdlog::level::info;
  }
}

}  // namespace

std::shared_ptr<spdlog::logger> CreateLogger(v1::LogFormat format, v1::LogLevel level) {
  return CreateLogger(format, level, std::make_shared<spdlog::sinks::stderr_sink_mt>());
}

std::shared_ptr<spdlog::logger> CreateLogger(v1::LogFormat format, v1::LogLevel level, spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("holdfastd", std::move(sink));
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::debug);
  logger->set_formatter(std::make_unique<LineFormatter>(format));
  return logger;
}

}  // namespace holdfast
