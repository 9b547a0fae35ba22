// Prints the library's messages on standard error.
#pragma once

#include <string>
#include <string_view>

#include "base/log.h"

namespace shoal::cli {

// From now on messages of at least this level are written at once, one line each.
void show_remarks(LogLevel least);

// $SHOAL_LOG_LEVEL: debug, info, warning or error; warning when it is unset or empty. Throws
// Error(invalid_argument) for anything else.
LogLevel wanted_remarks();

// "shoal: warning: MESSAGE", always on one line: control characters, which names of files may contain, become
// spaces.
std::string remark_line(LogLevel level, std::string_view message);

}  // namespace shoal::cli
