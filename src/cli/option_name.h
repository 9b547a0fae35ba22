// How messages name an option.
#pragma once

#include <algorithm>
#include <string>

namespace shoal::cli {

// As settings are named: "--max-new-tokens" or "--max-new-tokens,-n" -> "max_new_tokens".
inline std::string option_name(const std::string& flags) {
  std::string name = flags.substr(2, flags.find(',') - 2);
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace shoal::cli
