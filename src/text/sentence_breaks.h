// Where a text may be cut, and how well.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace shoal::text {

enum class BreakLevel { space, clause, sentence };

struct Break {
  size_t position;  // offset just after the last character of the left side (white space follows)
  BreakLevel level;
};

// In order of position; one position may be listed at several levels. Well-formed UTF-8; linear time.
std::vector<Break> find_breaks(std::string_view text);

}  // namespace shoal::text
