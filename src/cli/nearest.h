// The name that was meant by one that does not exist.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::cli {

// Letters to add, drop, replace or swap with their neighbour: optimal string alignment, in bytes.
size_t spelling_distance(std::string_view a, std::string_view b);

// The candidate that `name` is most likely a misspelling of, in any case of letters: one that differs in a
// third of the letters at most, or that begins with the name or is its beginning. Of equals the first. Empty:
// none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean X?", or nothing when no candidate is near; `quote` stands before and after X.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view quote = "");

}  // namespace shoal::cli
