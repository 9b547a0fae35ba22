// What somebody probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shoal::settings {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

// The name with the smallest distance to `wanted`, the first of equals. SHOAL_ and S1_MINI_ in front of a
// name do not count, so that S1_MINI_THREADS finds SHOAL_THREADS. `names` is not empty.
std::string_view nearest_name(std::string_view wanted, std::span<const std::string> names);

}  // namespace shoal::settings
