// Bytes as text (RFC 4648).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shoal {

std::string to_base64(std::string_view bytes);
void append_base64(std::string& out, std::string_view bytes);
// How long that is.
constexpr size_t base64_size(size_t bytes) { return (bytes + 2) / 3 * 4; }
// Standard and URL alphabets, padding or not, white space ignored, a "data:...;base64," prefix dropped;
// absent: not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace shoal
