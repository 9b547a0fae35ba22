// Percent-encoding of URLs and forms (RFC 3986, 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shoal {

// plus_is_space: as in queries and forms. Absent: a broken escape, or NUL.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space);

}  // namespace shoal
