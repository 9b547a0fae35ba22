// Paths of the table with a name in them.
#pragma once

#include <optional>
#include <string_view>

namespace shoal::server {

// "{name}" in a pattern stands for one part of the path; the last part stands for all that follows, because
// names of models have slashes. What it stands for, "" without one; absent: another path.
std::optional<std::string_view> match_path(std::string_view pattern, std::string_view path);

}  // namespace shoal::server
