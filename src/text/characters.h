// Classes of characters (Unicode properties).
#pragma once

#include <string_view>

namespace shoal::text {

bool is_white_space(char32_t c);      // White_Space
bool is_letter(char32_t c);           // general category L*
bool is_decimal_digit(char32_t c);    // general category Nd
bool is_letter_or_digit(char32_t c);  // L*, N*
bool is_combining_mark(char32_t c);   // M*: belongs to the character before it
bool is_upper(char32_t c);            // Lu

// CJK from here on: written without spaces, and numbers among it are not English.
inline constexpr char32_t kFirstWideCharacter = 0x2E80;

// `text`, well-formed UTF-8, without White_Space at its ends.
std::string_view strip_white_space(std::string_view text);

}  // namespace shoal::text
