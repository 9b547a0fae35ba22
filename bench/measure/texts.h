// Texts of a file.
#pragma once

#include <string>
#include <vector>

namespace shoal::bench {

// Non-empty lines of a UTF-8 file. Throws Error: not_found, io, too_large (over 16 MiB), invalid_argument (no
// text in it).
std::vector<std::string> read_texts(const std::string& path);

}  // namespace shoal::bench
