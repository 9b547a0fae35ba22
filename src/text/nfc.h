// Unicode normalisation form C.
#pragma once

#include <string>
#include <string_view>

namespace shoal::text {

// Canonical composition of well-formed UTF-8, in time proportional to its length.
std::string to_nfc(std::string_view text);

}  // namespace shoal::text
