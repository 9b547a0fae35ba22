// Built-in English texts of three lengths.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::load {

// "short": up to 60 characters; "medium": 60 to 200; "long": about 700. Each of the last two begins with an
// opening that hardly ever comes twice, so that no server answers from a cache. Throws
// Error(invalid_argument) for another name.
std::vector<std::string> built_in_texts(std::string_view set, uint64_t seed);

}  // namespace shoal::load
