#include "text/characters.h"

#include <utf8proc.h>

#include "text/utf8.h"

namespace shoal::text {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_between(char32_t c, utf8proc_category_t first, utf8proc_category_t last) {
  const utf8proc_category_t found = category(c);
  return found >= first && found <= last;
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || is_between(c, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool is_letter(char32_t c) { return is_between(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO); }

bool is_decimal_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_letter_or_digit(char32_t c) {
  return is_letter(c) || is_between(c, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_combining_mark(char32_t c) { return is_between(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }

std::string_view strip_white_space(std::string_view text) {
  while (!text.empty() && is_white_space(code_point_at(text, 0)))
    text.remove_prefix(character_bytes(text[0]));
  while (!text.empty()) {
    const size_t last = previous_character(text, text.size());
    if (!is_white_space(code_point_at(text, last))) break;
    text = text.substr(0, last);
  }
  return text;
}

}  // namespace shoal::text
