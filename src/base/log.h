// The destination of the library's messages. It never prints by itself: without a sink they are dropped.
#pragma once

#include <functional>
#include <string_view>

#include "base/error.h"

namespace shoal {

enum class LogLevel { debug, info, warning, error };
std::string_view name_of(LogLevel level);

// Called from any thread, one call at a time. An empty function discards messages again.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;
void set_log_sink(LogSink sink);

// Never throws: a message that cannot be built is lost.
void log_message(LogLevel level, std::string_view message) noexcept;

// log(LogLevel::warning, "cache: ", path, ": damaged, dropped");
template <typename... Parts>
void log(LogLevel level, const Parts&... parts) noexcept {
  try {
    log_message(level, concat(parts...));
  } catch (...) {  // no memory for the text
  }
}

}  // namespace shoal
