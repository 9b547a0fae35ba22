#include "text/numbers.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace shoal::text {
namespace {

constexpr std::string_view kSmall[] = {"zero",    "one",     "two",       "three",    "four",
                                       "five",    "six",     "seven",     "eight",    "nine",
                                       "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                       "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::string_view kTens[] = {"",      "",      "twenty",  "thirty", "forty",
                                      "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::string_view kThousands[] = {"",           "thousand",    "million",     "billion",
                                           "trillion",   "quadrillion", "quintillion", "sextillion",
                                           "septillion", "octillion",   "nonillion",   "decillion"};
constexpr size_t kMostDigits = 3 * std::size(kThousands);
// Words whose ordinal is not word + "th".
constexpr std::pair<std::string_view, std::string_view> kOrdinals[] = {
    {"one", "first"},    {"two", "second"}, {"three", "third"},   {"five", "fifth"},
    {"eight", "eighth"}, {"nine", "ninth"}, {"twelve", "twelfth"}};

std::string below_hundred(int n) {
  if (n < 20) return std::string(kSmall[n]);
  std::string words(kTens[n / 10]);
  if (n % 10 != 0) (words += '-') += kSmall[n % 10];
  return words;
}

std::string below_thousand(int n) {
  if (n < 100) return below_hundred(n);
  std::string words(kSmall[n / 100]);
  words += " hundred";
  if (n % 100 != 0) (words += ' ') += below_hundred(n % 100);
  return words;
}

// Value of at most nine digits.
int value_of(std::string_view digits) {
  int value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  return value;
}

// Two digits inside a longer name: "05" -> "oh five".
std::string pair_of(int n) { return n < 10 ? "oh " + below_hundred(n) : below_hundred(n); }

// The start of the last word: after the last blank or hyphen.
size_t last_word(std::string_view words) {
  const size_t separator = words.find_last_of(" -");
  return separator == std::string_view::npos ? 0 : separator + 1;
}

}  // namespace

std::string spell_digits(std::string_view digits) {
  std::string words;
  for (const char digit : digits) {
    if (!words.empty()) words += ' ';
    words += kSmall[digit - '0'];
  }
  return words;
}

std::string spell_integer(std::string_view digits) {
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return "zero";
  if (digits.size() > kMostDigits) return spell_digits(digits);
  std::string words;
  while (!digits.empty()) {
    const size_t group = (digits.size() - 1) / 3;  // of three digits, after this one
    const int value = value_of(digits.substr(0, digits.size() - 3 * group));
    digits.remove_prefix(digits.size() - 3 * group);
    if (value == 0) continue;
    if (!words.empty()) words += ' ';
    words += below_thousand(value);
    if (group > 0) (words += ' ') += kThousands[group];
  }
  return words;
}

std::string spell_ordinal(std::string_view digits) {
  std::string words = spell_integer(digits);
  const size_t begin = last_word(words);
  const std::string last = words.substr(begin);
  words.resize(begin);
  for (const auto& [cardinal, ordinal] : kOrdinals) {
    if (last == cardinal) return words += ordinal;
  }
  if (last.ends_with('y')) return words += last.substr(0, last.size() - 1) + "ieth";
  return words += last + "th";
}

std::string spell_decimal(std::string_view integer, std::string_view fraction) {
  std::string words = integer.empty() ? std::string() : spell_integer(integer) + " ";
  return words += "point " + spell_digits(fraction);
}

std::string spell_year(int year) {
  CHECK(year >= 0 && year <= 9999, "year ", year);
  const int century = year / 100, rest = year % 100;
  if (century % 10 == 0) {  // "two thousand five", "eight"
    std::string words = century > 0 ? std::string(kSmall[century / 10]) + " thousand" : "";
    if (rest > 9 && century > 0) return below_hundred(century) + " " + below_hundred(rest);
    if (rest > 0 || century == 0) words += (words.empty() ? "" : " ") + below_hundred(rest);
    return words;
  }
  return below_hundred(century) + " " + (rest == 0 ? "hundred" : pair_of(rest));
}

std::string spell_model_number(std::string_view digits) {
  if (digits.size() > 4 || (digits.size() > 1 && digits[0] == '0')) return spell_digits(digits);
  const int value = value_of(digits);
  if (digits.size() == 4) return spell_year(value);
  if (digits.size() < 3) return below_hundred(value);
  return std::string(kSmall[value / 100]) + " " + (value % 100 == 0 ? "hundred" : pair_of(value % 100));
}

std::string spell_fraction(std::string_view numerator, std::string_view denominator) {
  const bool one = spell_integer(numerator) == "one";
  const std::string below = spell_integer(denominator);
  std::string part = spell_ordinal(denominator);
  if (below == "two") part = "half";
  if (below == "four") part = "quarter";
  if (!one) part = part == "half" ? "halves" : part + "s";
  return spell_integer(numerator) + " " + part;
}

std::string plural_of(std::string_view words) {
  if (words.ends_with('y')) return std::string(words.substr(0, words.size() - 1)) + "ies";
  return std::string(words) + (words.ends_with('x') ? "es" : "s");
}

}  // namespace shoal::text
