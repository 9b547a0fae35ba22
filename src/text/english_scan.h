// Looking around in a text, for the rules of the English normaliser. Positions beyond the text read as '\0'.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/characters.h"
#include "text/utf8.h"

namespace shoal::text {

// The spoken form of the text from the position where a rule was tried up to `end`.
struct Spoken {
  std::string words;
  size_t end;
};

inline char char_at(std::string_view text, size_t at) { return at < text.size() ? text[at] : '\0'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_lower_ascii(char c) { return c >= 'a' && c <= 'z'; }
inline bool is_upper_ascii(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_letter_ascii(char c) { return is_lower_ascii(c) || is_upper_ascii(c); }

inline bool is_digit_at(std::string_view text, size_t at) { return is_digit(char_at(text, at)); }
inline bool starts_at(std::string_view text, size_t at, std::string_view what) {
  return at <= text.size() && text.substr(at).starts_with(what);
}

// A letter or digit of any script starts here.
inline bool is_word_at(std::string_view text, size_t at) {
  return at < text.size() && is_letter_or_digit(code_point_at(text, at));
}
// A letter or digit of any script ends here.
inline bool is_word_before(std::string_view text, size_t at) {
  return at > 0 && is_letter_or_digit(code_point_at(text, previous_character(text, at)));
}

inline size_t digits_end(std::string_view text, size_t at) {
  while (is_digit_at(text, at)) ++at;
  return at;
}
inline size_t letters_end(std::string_view text, size_t at) {
  while (is_letter_ascii(char_at(text, at))) ++at;
  return at;
}

// The position after one blank (also a no-break one), or `at` itself.
inline size_t skip_blank(std::string_view text, size_t at) {
  if (char_at(text, at) == ' ') return at + 1;
  for (const std::string_view blank : {"\u00A0", "\u202F", "\u2009"}) {
    if (starts_at(text, at, blank)) return at + blank.size();
  }
  return at;
}

// The position after a hyphen or en dash, or `at` itself.
inline size_t skip_dash(std::string_view text, size_t at) {
  if (char_at(text, at) == '-') return at + 1;
  return starts_at(text, at, "\u2013") ? at + 3 : at;
}

// Whether the dot of an abbreviation is a full stop as well: the text ends or a capital follows.
inline bool is_also_full_stop(std::string_view text, size_t dot) {
  const size_t next = skip_blank(text, dot + 1);
  if (next >= text.size() || text[next] == '\n' || text[next] == '\r') return true;
  return next > dot + 1 && is_upper_ascii(text[next]);
}

// The word of ASCII letters that ends before `at` and one blank; empty when there is none.
inline std::string_view previous_word(std::string_view text, size_t at) {
  if (at == 0 || text[at - 1] != ' ') return {};
  size_t begin = --at;
  while (begin > 0 && at - begin < 16 && is_letter_ascii(text[begin - 1])) --begin;
  return text.substr(begin, at - begin);
}

// Value of at most four digits.
inline int small_value(std::string_view digits) {
  int value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

}  // namespace shoal::text
