// Paths of servers that Shoal replaces which have no counterpart here.
#pragma once

#include <string_view>

namespace shoal::server {

// All are Kokoro-FastAPI's (0.8).
struct RefusedPath {
  std::string_view path;  // and all paths below it
  std::string_view why;   // one sentence: what serves instead
};

// nullptr: no such server has anything at this path.
const RefusedPath* find_refused_path(std::string_view path);

}  // namespace shoal::server
