// What other programs call the commands and options of Shoal.
#pragma once

#include <string_view>

namespace shoal::cli {

// The command line that `word` after `command` ("shoal", "shoal voices") stands for elsewhere; empty:
// unknown.
std::string_view familiar_command(std::string_view command, std::string_view word);

// What to do instead of `option` of `command`, as the end of a sentence; empty: unknown.
std::string_view familiar_option(std::string_view command, std::string_view option);

}  // namespace shoal::cli
