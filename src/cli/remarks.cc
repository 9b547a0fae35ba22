#include "cli/remarks.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "cli/colour.h"

namespace shoal::cli {

void show_remarks(LogLevel least) {
  // The message replaces a progress line, which is drawn again below it.
  const char* const clear_line = isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "";
  set_log_sink([=](LogLevel level, std::string_view message) {
    // One call, so that a progress line drawn by another thread comes before or after.
    if (level < least) return;
    const Colour colour = level == LogLevel::error ? Colour::red : Colour::yellow;
    const std::string line = remark_line(level, message);
    const size_t name = std::string_view("shoal:").size();
    std::fprintf(stderr, "%s%s%s\n", clear_line,
                 in_colour(line.substr(0, name), colour, STDERR_FILENO).c_str(), line.c_str() + name);
  });
}

LogLevel wanted_remarks() {
  const char* const value = std::getenv("SHOAL_LOG_LEVEL");
  if (!value || !*value) return LogLevel::warning;
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error})
    if (name_of(level) == value) return level;
  fail(ErrorCode::invalid_argument, "SHOAL_LOG_LEVEL: expected debug, info, warning or error, got \"", value,
       "\"");
}

std::string remark_line(LogLevel level, std::string_view message) {
  std::string line = concat("shoal: ", name_of(level), ": ", message);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return line;
}

}  // namespace shoal::cli
