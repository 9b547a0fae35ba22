// tokenizer.tiktoken and special_tokens.json (fish-speech's tokenizer).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "text/tokenizer.h"

namespace shoal::text {

// Parses the contents of the two files; without special tokens S1-mini's own list is used. The names are for
// messages. Throws Error(corrupt_file) naming the line or key.
std::unique_ptr<const Tokenizer> parse_tiktoken(std::string_view ranks, std::string_view ranks_name,
                                                std::optional<std::string_view> special_tokens,
                                                std::string_view special_tokens_name);

}  // namespace shoal::text
