// Settings from the environment, under our names and those that older deployments have in their scripts.
#pragma once

#include <optional>
#include <string>

namespace shoal::cli {

// The value of `name`, or of its older alias; empty variables do not count. Throws Error(invalid_argument)
// when both are set and differ: one setting under two names is never a guess.
std::optional<std::string> from_environment(const char* name, const char* older_name);

}  // namespace shoal::cli
