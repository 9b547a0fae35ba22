#include "text/english_words.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "text/english_tables.h"
#include "text/numbers.h"

namespace shoal::text {
namespace {

// A capitalised word precedes, as in "Main St.", and is not itself such a word: "Street Ave." names no
// street, and in "Main St. Ave. Rd." each spoken word would make the next abbreviation match.
bool follows_a_name(std::string_view text, size_t at) {
  const std::string_view before = previous_word(text, at);
  return !before.empty() && is_upper_ascii(before[0]) && !is_said_after_capital(before);
}

bool applies(const Abbreviation& abbreviation, std::string_view text, size_t at, size_t dot) {
  const size_t next = skip_blank(text, dot + 1);
  switch (abbreviation.when) {
    case Abbreviation::When::always:
      return true;
    case Abbreviation::When::before_capital:
      return next > dot + 1 && is_upper_ascii(char_at(text, next));
    case Abbreviation::When::after_capital:
      return follows_a_name(text, at);
    case Abbreviation::When::before_number:
      return is_digit_at(text, next);
  }
  return false;
}

// Value of a Roman numeral in its one regular spelling up to 89 ("XIV", not "IIII"); 0 when it is none.
int roman_value(std::string_view word) {
  constexpr std::string_view kTens[] = {"", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX"};
  constexpr std::string_view kOnes[] = {"", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"};
  for (int tens = std::size(kTens) - 1; tens >= 0; --tens) {
    if (!word.starts_with(kTens[tens])) continue;
    for (int ones = 0; ones <= 9; ++ones) {
      if (word.substr(kTens[tens].size()) == kOnes[ones]) return tens * 10 + ones;
    }
  }
  return 0;
}

// ---- addresses ----

bool is_address_character(char c) {
  return is_letter_ascii(c) || is_digit(c) ||
         std::string_view("@:/.?=&#%_~+-").find(c) != std::string_view::npos;
}

constexpr std::string_view kTopLevelDomains[] = {"com", "org", "net", "edu", "gov", "io", "dev", "ai", "app"};

// "label.label.tld": letters, digits and hyphens, at least one dot.
bool is_domain(std::string_view name) {
  size_t labels = 0;
  while (true) {
    const size_t end = std::min(name.find('.'), name.size());
    const std::string_view label = name.substr(0, end);
    const auto is_label_character = [](char c) { return is_letter_ascii(c) || is_digit(c) || c == '-'; };
    if (label.empty() || !std::all_of(label.begin(), label.end(), is_label_character)) return false;
    ++labels;
    if (end == name.size()) return labels >= 2 && is_letter_ascii(label[0]);
    name.remove_prefix(end + 1);
  }
}

bool is_email(std::string_view token) {
  const size_t sign = token.find('@');
  if (sign == 0 || sign == std::string_view::npos) return false;
  const auto is_local = [](char c) { return std::string_view("/?=#:@").find(c) == std::string_view::npos; };
  return std::all_of(token.begin(), token.begin() + static_cast<std::ptrdiff_t>(sign), is_local) &&
         is_domain(token.substr(sign + 1));
}

// The part of a URL to speak: without scheme and "www."; empty when the token is no URL.
std::string_view spoken_part_of_url(std::string_view token) {
  bool certain = false;
  for (const std::string_view prefix : {"http://", "https://", "ftp://", "www."}) {
    if (!token.starts_with(prefix)) continue;
    token.remove_prefix(prefix.size());
    certain = true;
  }
  const std::string_view host = token.substr(0, token.find_first_of("/:?#"));
  if (!is_domain(host)) return {};
  const std::string_view top = host.substr(host.rfind('.') + 1);
  const auto* known = std::find(std::begin(kTopLevelDomains), std::end(kTopLevelDomains), top);
  if (!certain && known == std::end(kTopLevelDomains)) return {};
  return token.ends_with('/') ? token.substr(0, token.size() - 1) : token;
}

std::string_view name_of_mark(char mark) {
  constexpr std::pair<char, std::string_view> kMarks[] = {
      {'@', "at"},      {'.', "dot"},           {'/', "slash"},  {'-', "dash"}, {'_', "underscore"},
      {':', "colon"},   {'?', "question mark"}, {'=', "equals"}, {'&', "and"},  {'#', "hash"},
      {'%', "percent"}, {'~', "tilde"},         {'+', "plus"}};
  for (const auto& [character, name] : kMarks) {
    if (character == mark) return name;
  }
  return {};
}

std::string address_words(std::string_view address) {
  std::string words;
  for (size_t at = 0; at < address.size();) {
    if (!words.empty()) words += ' ';
    size_t end = at + 1;
    if (is_letter_ascii(address[at])) {
      end = letters_end(address, at);
      words += address.substr(at, end - at);
    } else if (is_digit(address[at])) {
      end = digits_end(address, at);
      words += spell_model_number(address.substr(at, end - at));
    } else {
      words += name_of_mark(address[at]);
    }
    at = end;
  }
  return words;
}

// ---- symbols ----

struct Symbol {
  std::string_view character, words;
};
// Spoken when a number follows at once and nothing is attached before.
constexpr Symbol kSignsBeforeNumber[] = {{"-", "minus"},     {"\u2212", "minus"}, {"+", "plus"},
                                         {"~", "about"},     {"≈", "about"},      {"±", "plus or minus"},
                                         {"#", "number"},    {"§", "section"},    {"<", "less than"},
                                         {">", "more than"}, {"≤", "at most"},    {"≥", "at least"}};
// Spoken between blanks.
constexpr Symbol kBetweenBlanks[] = {{"+", "plus"},       {"=", "equals"},   {"×", "times"},
                                     {"÷", "divided by"}, {"≈", "is about"}, {"@", "at"}};

// "--5", "##", "@@@": repeated signs are decoration; the whole row stays.
bool is_in_row(std::string_view text, size_t at, std::string_view sign) {
  return text.substr(0, at).ends_with(sign) || starts_at(text, at + sign.size(), sign);
}

// After a row of '&' or "&amp;".
size_t ampersands_end(std::string_view text, size_t at) {
  while (char_at(text, at) == '&') at += starts_at(text, at, "&amp;") ? 5 : 1;
  return at;
}

bool is_number_at(std::string_view text, size_t at) {
  if (const Currency* currency = find_currency(text, at)) at = skip_blank(text, at + currency->symbol.size());
  return is_digit_at(text, at + (char_at(text, at) == '.' ? 1 : 0));
}

// '80s: the decade loses its apostrophe.
std::optional<Spoken> speak_short_decade(std::string_view text, size_t at, size_t digits) {
  const size_t end = digits + 2;
  if (digits_end(text, digits) != end || text[digits + 1] != '0' || text[digits] == '0') return std::nullopt;
  if (is_word_before(text, at) || char_at(text, end) != 's' || is_word_at(text, end + 1)) return std::nullopt;
  return Spoken{plural_of(spell_integer(text.substr(digits, 2))), end + 1};
}

}  // namespace

std::optional<Spoken> speak_abbreviation(std::string_view text, size_t at) {
  size_t dot = letters_end(text, at);
  if (dot == at + 1 && char_at(text, dot) == '.' && is_letter_ascii(char_at(text, dot + 1)))  // "e.g."
    dot = letters_end(text, dot + 1);
  constexpr size_t kLongest = 6;
  if (char_at(text, dot) != '.' || dot - at > kLongest) return std::nullopt;
  for (const Abbreviation& abbreviation : find_abbreviations(text.substr(at, dot - at))) {
    if (!applies(abbreviation, text, at, dot)) continue;
    const bool keep_dot = abbreviation.ends_sentences && is_also_full_stop(text, dot);
    return Spoken{std::string(abbreviation.words), keep_dot ? dot : dot + 1};
  }
  return std::nullopt;
}

std::optional<Spoken> speak_roman_numeral(std::string_view text, size_t at) {
  const size_t end = letters_end(text, at), begin = skip_blank(text, end);
  if (begin == end || std::string_view("IVXL").find(char_at(text, begin)) > 3) return std::nullopt;
  const size_t numeral_end = letters_end(text, begin);
  const std::string_view numeral = text.substr(begin, numeral_end - begin);
  const int value = roman_value(numeral);
  if (value == 0 || is_word_at(text, numeral_end)) return std::nullopt;
  const std::string_view word = text.substr(at, end - at);
  const std::string digits = std::to_string(value);
  if (is_regnal_name(word) && value > 1)  // "Mary I" may go on "am"
    return Spoken{concat(word, " the ", spell_ordinal(digits)), numeral_end};
  const size_t next = skip_blank(text, numeral_end);
  const bool pronoun = numeral == "I" && next > numeral_end && is_lower_ascii(char_at(text, next));
  if (!is_counted_in_roman(word) || pronoun) return std::nullopt;
  return Spoken{concat(word, " ", spell_integer(digits)), numeral_end};
}

std::optional<Spoken> speak_address(std::string_view text, size_t at) {
  constexpr size_t kLongest = 2048;  // bytes; nobody wants to hear a longer one
  size_t begin = at;
  while (begin < text.size() && begin - at < 4 && std::string_view("(<[\"").find(text[begin]) < 4) ++begin;
  size_t end = begin;
  while (end < text.size() && end - begin < kLongest && is_address_character(text[end])) ++end;
  while (end > begin && std::string_view(".?:&").find(text[end - 1]) < 4) --end;
  const std::string_view token = text.substr(begin, end - begin);
  if (is_word_at(text, end) || token.find('.') == std::string_view::npos) return std::nullopt;
  const std::string_view spoken = is_email(token) ? token : spoken_part_of_url(token);
  if (spoken.empty()) return std::nullopt;
  return Spoken{concat(text.substr(at, begin - at), address_words(spoken)), end};
}

std::optional<Spoken> speak_symbol(std::string_view text, size_t at) {
  if (text[at] == '&') return Spoken{"and", ampersands_end(text, at)};
  const bool glued_in_front =
      is_word_before(text, at) || (at > 0 && (text[at - 1] == ')' || text[at - 1] == '.'));
  const bool after_blank = at > 0 && text[at - 1] == ' ';
  for (const Symbol& symbol : kSignsBeforeNumber) {
    const size_t end = at + symbol.character.size();
    if (symbol.character[0] == text[at] && !glued_in_front && starts_at(text, at, symbol.character) &&
        is_number_at(text, end) && !is_in_row(text, at, symbol.character))
      return Spoken{std::string(symbol.words), end};
  }
  for (const Symbol& symbol : kBetweenBlanks) {
    const size_t end = at + symbol.character.size();
    if (symbol.character[0] == text[at] && after_blank && starts_at(text, at, symbol.character) &&
        char_at(text, end) == ' ')
      return Spoken{std::string(symbol.words), end};
  }
  if (text[at] == '.' && !glued_in_front && is_digit_at(text, at + 1)) {
    const size_t end = digits_end(text, at + 1);
    return Spoken{spell_decimal("", text.substr(at + 1, end - at - 1)), end};
  }
  if (text[at] == '@' && is_word_at(text, at + 1) && !is_in_row(text, at, "@")) return Spoken{"at", at + 1};
  if (text[at] == '\'') return speak_short_decade(text, at, at + 1);
  if (starts_at(text, at, "\u2019")) return speak_short_decade(text, at, at + 3);
  return std::nullopt;
}

}  // namespace shoal::text
