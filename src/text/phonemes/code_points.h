// Phonemes are counted, cut and compared as code points.
#pragma once

#include <string>
#include <string_view>

#include "text/utf8.h"

namespace shoal::phonemes {

// Well-formed UTF-8 (phonemes that come from outside have been checked).
inline std::u32string to_code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); at += text::character_bytes(text[at]))
    out += text::code_point_at(text, at);
  return out;
}

inline std::string to_utf8(std::u32string_view code_points) {
  std::string out;
  out.reserve(code_points.size() * 2);
  for (const char32_t c : code_points) text::append_utf8(out, c);
  return out;
}

inline int count_code_points(std::string_view text) {
  int count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

// Belongs to the symbol before it: a length mark or a combining accent.
inline bool continues_symbol(char32_t c) { return c == U'ː' || (c >= 0x300 && c <= 0x36F); }

}  // namespace shoal::phonemes
