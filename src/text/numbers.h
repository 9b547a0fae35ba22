// English words for numbers, as an American reader says them: "two hundred thirty-four", no "and".
// Digit strings are ASCII digits; they may be of any length.
#pragma once

#include <string>
#include <string_view>

namespace shoal::text {

// "1234" -> "one thousand two hundred thirty-four". Leading zeros are ignored; beyond 10^36 digit by digit.
std::string spell_integer(std::string_view digits);
// "22" -> "twenty-second".
std::string spell_ordinal(std::string_view digits);
// "007" -> "zero zero seven".
std::string spell_digits(std::string_view digits);
// "3", "14" -> "three point one four"; an empty integer part is not spoken ("point five").
std::string spell_decimal(std::string_view integer, std::string_view fraction);
// 1984 -> "nineteen eighty-four", 1905 -> "nineteen oh five", 1900 -> "nineteen hundred", 2005 -> "two
// thousand five". 0 <= year <= 9999.
std::string spell_year(int year);
// Digits glued to letters, as in names of things: "380" -> "three eighty", "101" -> "one oh one".
std::string spell_model_number(std::string_view digits);
// 3, 4 -> "three quarters"; denominator >= 2.
std::string spell_fraction(std::string_view numerator, std::string_view denominator);
// The word or its last word in the plural: "eighty" -> "eighties", "nineteen hundred" -> "nineteen hundreds".
std::string plural_of(std::string_view words);

}  // namespace shoal::text
