// Prints the library's messages on standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"

namespace shoal::cli {

// From now on remarks of this level and graver ones are written as they come, one line each.
void show_remarks(LogLevel least);

// $SHOAL_LOG_LEVEL: debug, info, warning or error; warning when it is unset or empty. Throws
// Error(invalid_argument) for anything else.
LogLevel wanted_remarks();

// "shoal: warning: MESSAGE", a line of its own whatever the message holds: control characters, which names of
// files may contain, become spaces.
std::string remark_line(LogLevel level, std::string_view message);

}  // namespace shoal::cli
