// What an API key may be.
#pragma once

#include <cstddef>
#include <string_view>

namespace shoal::settings {

constexpr size_t kMostKeyBytes = 512;

// What fits in a header field after "Bearer ": 1 to kMostKeyBytes printable ASCII characters without blanks.
bool is_key(std::string_view text);

}  // namespace shoal::settings
