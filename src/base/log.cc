#include "base/log.h"

#include <mutex>

namespace shoal {
namespace {

std::mutex log_mutex;
LogSink log_sink;

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(log_mutex);
  log_sink = std::move(sink);
}

void log_message(LogLevel level, std::string_view message) noexcept {
  try {
    const std::lock_guard lock(log_mutex);
    if (log_sink) log_sink(level, message);
  } catch (...) {  // the sink's own failure is not ours to report
  }
}

}  // namespace shoal
