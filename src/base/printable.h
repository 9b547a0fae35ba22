// Foreign bytes made fit for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal {

bool is_utf8(std::string_view text);

// `text` on one line for a message or a comment: unprintable characters become '?', text beyond the limit
// '...'.
std::string printable(std::string_view text, size_t max_characters = 100);

}  // namespace shoal
