// Which folders a request may have loaded.
#pragma once

#include <string>
#include <string_view>

namespace shoal::server {

// Throws Error(invalid_argument) unless the text can name a model that comes by a request: 1 to 255 letters,
// digits, dots, dashes and underscores, the first a letter or digit (it stands in paths).
void check_new_name(const std::string& name);

// The folder that `url` names (an absolute path, or file:// before one), without links. Throws Error that
// starts with `url`: invalid_argument (no such path, no folder, not below `root` once links are followed),
// not_found.
std::string folder_below(const std::string& root, std::string_view url);

}  // namespace shoal::server
