// What somebody probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shoal {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

// The name with the smallest edit distance to `wanted`, the first of equals. `prefixes` before a name are
// ignored: with SHOAL_ and S1_MINI_, S1_MINI_THREADS finds SHOAL_THREADS. `names` is not empty.
std::string_view nearest_name(std::string_view wanted, std::span<const std::string> names,
                              std::span<const std::string_view> prefixes = {});

}  // namespace shoal
