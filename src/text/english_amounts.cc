#include "text/english_amounts.h"

#include <algorithm>

#include "base/error.h"
#include "text/english_tables.h"
#include "text/numbers.h"

namespace shoal::text {
namespace {

struct Number {
  std::string integer;   // digits without separators
  std::string fraction;  // after the point, or empty
  bool grouped = false;  // had thousands separators
  size_t end = 0;

  bool is_one() const { return integer == "1" && fraction.empty(); }
};

// "1234", "1,234", "1,234.5", "3.14".
Number read_number(std::string_view text, size_t at) {
  Number number;
  number.end = digits_end(text, at);
  number.integer = text.substr(at, number.end - at);
  if (number.integer.size() <= 3) {
    while (char_at(text, number.end) == ',' && digits_end(text, number.end + 1) == number.end + 4) {
      number.integer += text.substr(number.end + 1, 3);
      number.grouped = true;
      number.end += 4;
    }
  }
  if (char_at(text, number.end) == '.' && is_digit_at(text, number.end + 1)) {
    const size_t begin = number.end + 1;
    number.end = digits_end(text, begin);
    number.fraction = text.substr(begin, number.end - begin);
  }
  return number;
}

// A long row of digits without separators is a number of something (a phone, an account), unless it is round.
std::string integer_words(const Number& number) {
  const std::string& digits = number.integer;
  constexpr size_t kLongRow = 8;
  const bool is_row = !number.grouped && digits.size() >= kLongRow && !digits.ends_with("000");
  if (is_row || (digits.size() > 1 && digits[0] == '0' && number.fraction.empty()))
    return spell_digits(digits);
  return spell_integer(digits);
}

std::string words_of(const Number& number) {
  return number.fraction.empty() ? integer_words(number) : spell_decimal(number.integer, number.fraction);
}

// Years are 1600 to 2099, from 1100 on after a word such as "in".
bool is_year(std::string_view text, size_t at, const Number& number) {
  if (number.integer.size() != 4 || number.grouped || !number.fraction.empty()) return false;
  const int value = small_value(number.integer);
  if (value >= 1600 && value <= 2099) return true;
  constexpr std::string_view kBeforeYears[] = {"in",     "In",    "since",  "Since", "from", "From", "until",
                                               "before", "after", "around", "circa", "by",   "year"};
  const std::string_view before = previous_word(text, at);
  return value >= 1100 && value < 2100 &&
         std::find(std::begin(kBeforeYears), std::end(kBeforeYears), before) != std::end(kBeforeYears);
}

// "/month" -> " per month"; nothing otherwise.
void add_rate(std::string_view text, Spoken& spoken) {
  if (char_at(text, spoken.end) != '/') return;
  const size_t begin = spoken.end + 1, end = letters_end(text, begin);
  const std::string_view rate = find_rate(text.substr(begin, end - begin));
  if (rate.empty() || is_word_at(text, end)) return;
  spoken.words += concat(" per ", rate);
  spoken.end = end;
}

std::string money_words(const Number& number, std::string_view multiplier, const Currency& currency) {
  if (!multiplier.empty()) return concat(words_of(number), " ", multiplier, " ", currency.plural);
  const std::string whole =
      concat(spell_integer(number.integer), " ", number.integer == "1" ? currency.singular : currency.plural);
  if (number.fraction.empty()) return whole;
  if (number.fraction.size() != 2 || currency.cent.empty())
    return concat(words_of(number), " ", currency.plural);
  const int cents = small_value(number.fraction);
  if (cents == 0) return whole;
  const std::string small =
      concat(spell_integer(number.fraction), " ", cents == 1 ? currency.cent : currency.cents);
  return small_value(number.integer.substr(0, 4)) == 0 ? small : whole + " and " + small;
}

struct Match {
  std::string_view words;
  size_t end;
};
// "k" or " million" after an amount of money; a single letter must follow without a blank.
Match read_multiplier(std::string_view text, size_t at) {
  const size_t begin = skip_blank(text, at), end = letters_end(text, begin);
  for (const Multiplier& multiplier : money_multipliers()) {
    if (text.substr(begin, end - begin) != multiplier.spelling || is_word_at(text, end)) continue;
    if (begin == at || multiplier.spelling.size() > 1) return {multiplier.word, end};
  }
  return {{}, at};
}

struct VulgarFraction {
  std::string_view character, numerator, denominator;
};
constexpr VulgarFraction kVulgarFractions[] = {
    {"½", "1", "2"}, {"⅓", "1", "3"}, {"⅔", "2", "3"}, {"¼", "1", "4"}, {"¾", "3", "4"},
    {"⅕", "1", "5"}, {"⅖", "2", "5"}, {"⅗", "3", "5"}, {"⅘", "4", "5"}, {"⅙", "1", "6"},
    {"⅚", "5", "6"}, {"⅛", "1", "8"}, {"⅜", "3", "8"}, {"⅝", "5", "8"}, {"⅞", "7", "8"}};

struct Fraction {
  std::string_view numerator, denominator;
  size_t end;
};
// "½" or "3/4" (at most three digits each, nothing attached after it).
std::optional<Fraction> read_fraction(std::string_view text, size_t at) {
  for (const VulgarFraction& fraction : kVulgarFractions) {
    if (fraction.character[0] == char_at(text, at) && starts_at(text, at, fraction.character))
      return Fraction{fraction.numerator, fraction.denominator, at + fraction.character.size()};
  }
  const size_t slash = digits_end(text, at);
  const size_t end = digits_end(text, slash + 1);
  if (char_at(text, slash) != '/' || slash == at || slash - at > 3 || end <= slash + 1 || end - slash > 4)
    return std::nullopt;
  const char next = char_at(text, end);
  if (is_word_at(text, end) || next == '/' || ((next == '.' || next == ',') && is_digit_at(text, end + 1)))
    return std::nullopt;
  return Fraction{text.substr(at, slash - at), text.substr(slash + 1, end - slash - 1), end};
}

bool is_proper(const Fraction& fraction) {
  const int below = small_value(fraction.denominator);
  return below >= 2 && small_value(fraction.numerator) < below && fraction.denominator[0] != '0';
}

// "and a half", "and three quarters".
std::string added_fraction(const Fraction& fraction) {
  std::string words = spell_fraction(fraction.numerator, fraction.denominator);
  if (fraction.numerator == "1") words.replace(0, 3, "a");
  return " and " + words;
}

// The unit after a number, and its end: a dot that only marks the abbreviation belongs to it. A sign is no
// abbreviation: the dot of "99%." ends a sentence, whatever case follows.
const Unit* read_unit(std::string_view text, size_t at, size_t& end) {
  const size_t begin = skip_blank(text, at);
  const Unit* unit = find_unit(text, begin);
  if (!unit || (begin > at && unit->space == Unit::Space::none)) return nullptr;
  end = begin + unit->symbol.size();
  const size_t next = skip_blank(text, end + 1);
  const bool abbreviated = is_letter_ascii(unit->symbol.back());
  if (abbreviated && char_at(text, end) == '.' && next > end + 1 && is_lower_ascii(char_at(text, next)))
    ++end;
  return unit;
}

// ---- the suffixes of speak_amount, in the order in which they are tried ----

using Suffix = std::optional<Spoken> (*)(std::string_view text, size_t at, const Number& number);

std::optional<Spoken> ordinal(std::string_view text, size_t, const Number& number) {
  constexpr std::string_view kSuffixes[] = {"st", "nd", "rd", "th", "ST", "ND", "RD", "TH"};
  const std::string_view suffix = text.substr(number.end).substr(0, 2);
  if (std::find(std::begin(kSuffixes), std::end(kSuffixes), suffix) == std::end(kSuffixes))
    return std::nullopt;
  if (!number.fraction.empty() || is_word_at(text, number.end + 2)) return std::nullopt;
  return Spoken{spell_ordinal(number.integer), number.end + 2};
}

// "1980s", "80's".
std::optional<Spoken> decade(std::string_view text, size_t, const Number& number) {
  const size_t s = number.end + (char_at(text, number.end) == '\'' ? 1 : 0);
  if (char_at(text, s) != 's' || is_word_at(text, s + 1)) return std::nullopt;
  const std::string& digits = number.integer;
  if (!number.fraction.empty() || number.grouped || !digits.ends_with('0') || digits[0] == '0')
    return std::nullopt;
  if (digits.size() == 4) return Spoken{plural_of(spell_year(small_value(digits))), s + 1};
  if (digits.size() == 2) return Spoken{plural_of(spell_integer(digits)), s + 1};
  return std::nullopt;
}

// 5'10" -> "five feet ten inches".
std::optional<Spoken> feet_and_inches(std::string_view text, size_t, const Number& number) {
  const auto mark_end = [&](size_t at, std::string_view plain, std::string_view prime) {
    if (starts_at(text, at, plain)) return at + plain.size();
    return starts_at(text, at, prime) ? at + prime.size() : at;
  };
  const size_t inches = mark_end(number.end, "'", "\u2032"), inches_end = digits_end(text, inches);
  const size_t end = mark_end(inches_end, "\"", "\u2033");
  if (inches == number.end || inches_end == inches || inches_end - inches > 2 || end == inches_end)
    return std::nullopt;
  const std::string_view digits = text.substr(inches, inches_end - inches);
  return Spoken{concat(words_of(number), number.is_one() ? " foot " : " feet ", spell_integer(digits),
                       digits == "1" ? " inch" : " inches"),
                end};
}

// "20$", "7.99 €".
std::optional<Spoken> money_behind(std::string_view text, size_t, const Number& number) {
  const size_t begin = skip_blank(text, number.end);
  const Currency* currency = find_currency(text, begin);
  if (!currency || is_letter_ascii(currency->symbol[0])) return std::nullopt;
  const size_t end = begin + currency->symbol.size();
  if (is_word_at(text, skip_blank(text, end)) &&
      (begin > number.end || is_digit_at(text, skip_blank(text, end))))
    return std::nullopt;  // the symbol belongs to what follows: "5 $10 bills"
  return Spoken{money_words(number, {}, *currency), end};
}

// "3x4", "1920 × 1080": the second number is left to the next round.
std::optional<Spoken> dimensions(std::string_view text, size_t at, const Number& number) {
  const size_t times = skip_blank(text, number.end);
  const size_t end = starts_at(text, times, "×")   ? times + 2
                     : starts_at(text, times, "x") ? times + 1
                                                   : times;
  const size_t next = skip_blank(text, end);
  if (end == times || !is_digit_at(text, next) || (times > number.end) != (next > end)) return std::nullopt;
  const std::string words =
      is_year(text, at, number) ? spell_year(small_value(number.integer)) : words_of(number);
  return Spoken{words + " by", next};
}

// "2½", "2 1/2", also followed by a unit.
std::optional<Spoken> mixed_fraction(std::string_view text, size_t, const Number& number) {
  if (!number.fraction.empty()) return std::nullopt;
  const size_t begin = skip_blank(text, number.end);
  const std::optional<Fraction> fraction = read_fraction(text, begin);
  if (!fraction || !is_proper(*fraction)) return std::nullopt;
  Spoken spoken{words_of(number) + added_fraction(*fraction), fraction->end};
  size_t end = 0;
  if (const Unit* unit = read_unit(text, spoken.end, end))
    spoken = {concat(spoken.words, " ", unit->plural), end};
  return spoken;
}

std::optional<Spoken> unit_behind(std::string_view text, size_t, const Number& number) {
  size_t end = 0;
  const Unit* unit = read_unit(text, number.end, end);
  if (!unit) return std::nullopt;
  Spoken spoken{concat(words_of(number), " ", number.is_one() ? unit->singular : unit->plural), end};
  add_rate(text, spoken);
  return spoken;
}

// "a 5-km run" -> "a five-kilometer run".
std::optional<Spoken> unit_behind_hyphen(std::string_view text, size_t, const Number& number) {
  const size_t begin = number.end + 1;
  const Unit* unit = char_at(text, number.end) == '-' ? find_unit(text, begin) : nullptr;
  if (!unit || unit->symbol.size() < 2 || !is_letter_ascii(unit->symbol[0])) return std::nullopt;
  return Spoken{concat(words_of(number), "-", unit->singular), begin + unit->symbol.size()};
}

// "18+" -> "eighteen plus".
std::optional<Spoken> plus_behind(std::string_view text, size_t, const Number& number) {
  if (char_at(text, number.end) != '+' || is_word_at(text, number.end + 1)) return std::nullopt;
  return Spoken{words_of(number) + " plus", number.end + 1};
}

// "3:1" -> "three to one".
std::optional<Spoken> ratio(std::string_view text, size_t, const Number& number) {
  if (char_at(text, number.end) != ':' || !is_digit_at(text, number.end + 1)) return std::nullopt;
  return Spoken{words_of(number) + " to", number.end + 1};
}

constexpr Suffix kSuffixes[] = {ordinal,        decade,      feet_and_inches,    money_behind, dimensions,
                                mixed_fraction, unit_behind, unit_behind_hyphen, plus_behind,  ratio};

}  // namespace

std::optional<Spoken> speak_fraction(std::string_view text, size_t at) {
  const std::optional<Fraction> fraction = read_fraction(text, at);
  if (!fraction) return std::nullopt;
  const auto& [above, below, end] = *fraction;
  if (above == "24" && below == "7") return Spoken{"twenty-four seven", end};
  if (above == "9" && below == "11") return Spoken{"nine eleven", end};
  const std::string over = spell_integer(above), under = spell_integer(below);
  if (above == below || below == "10" || below == "100") return Spoken{over + " out of " + under, end};
  if (!is_proper(*fraction) || below.size() > 2) return Spoken{over + " over " + under, end};
  const std::string words = spell_fraction(above, below);
  size_t unit_end = 0;
  const Unit* unit = read_unit(text, end, unit_end);
  if (!unit) return Spoken{words, end};
  const bool vowel = std::string_view("aeiou").find(unit->singular[0]) < 5 || unit->singular == "hour";
  return Spoken{concat(words, vowel ? " of an " : " of a ", unit->singular), unit_end};
}

std::optional<Spoken> speak_money(std::string_view text, size_t at) {
  const Currency* currency = find_currency(text, at);
  if (!currency) return std::nullopt;
  const size_t begin = skip_blank(text, at + currency->symbol.size());
  if (!is_digit_at(text, begin)) return std::nullopt;
  Number number = read_number(text, begin);
  std::string words;
  if (const size_t second = skip_dash(text, number.end); second > number.end && is_digit_at(text, second)) {
    words = words_of(number) + " to ";
    number = read_number(text, second);
  }
  const Match multiplier = read_multiplier(text, number.end);
  Spoken spoken{words + money_words(number, multiplier.words, *currency),
                multiplier.words.empty() ? number.end : multiplier.end};
  add_rate(text, spoken);
  return spoken;
}

std::optional<Spoken> speak_amount(std::string_view text, size_t at) {
  Number number = read_number(text, at);
  if (is_word_before(text, at)) {  // "MP3", "A380", "GPT3.5"
    if (!number.fraction.empty()) return Spoken{words_of(number), number.end};
    const size_t end = digits_end(text, at);
    return Spoken{spell_model_number(text.substr(at, end - at)), end};
  }
  for (const Suffix suffix : kSuffixes) {
    if (std::optional<Spoken> spoken = suffix(text, at, number)) return spoken;
  }
  if (is_word_at(text, number.end) && number.fraction.empty() && !number.grouped)  // "3D", "1080p"
    return Spoken{spell_model_number(number.integer), number.end};
  if (is_year(text, at, number)) return Spoken{spell_year(small_value(number.integer)), number.end};
  return Spoken{words_of(number), number.end};
}

}  // namespace shoal::text
