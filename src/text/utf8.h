// UTF-8 in and out of code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::text {

// Offset of the first byte that is not part of well-formed UTF-8 (overlong forms, surrogates and values over
// U+10FFFF are not well formed), or npos.
size_t find_invalid_utf8(std::string_view text);

// Throws Error(invalid_argument) "text: not valid UTF-8 (byte N)".
void require_utf8(std::string_view text);

// The functions below require well-formed text.

// Bytes of the character that starts with this byte.
size_t character_bytes(char first);

// Code point of the character that starts at `at`.
char32_t code_point_at(std::string_view text, size_t at);

// Offset of the character that ends before `at`; at > 0.
size_t previous_character(std::string_view text, size_t at);

int64_t count_characters(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

}  // namespace shoal::text
