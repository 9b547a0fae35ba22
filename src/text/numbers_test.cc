#include "text/numbers.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace shoal::text {
namespace {

TEST(SpellInteger, KnownNumbers) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "zero"},
      {"000", "zero"},
      {"7", "seven"},
      {"13", "thirteen"},
      {"20", "twenty"},
      {"45", "forty-five"},
      {"100", "one hundred"},
      {"101", "one hundred one"},
      {"999", "nine hundred ninety-nine"},
      {"1000", "one thousand"},
      {"1001", "one thousand one"},
      {"12345", "twelve thousand three hundred forty-five"},
      {"1000000", "one million"},
      {"1000017", "one million seventeen"},
      {"9876543210",
       "nine billion eight hundred seventy-six million five hundred forty-three thousand two hundred ten"},
      {"1000000000000000000", "one quintillion"},
      {"1000000000000000000000000000000000", "one decillion"},
  };
  for (const auto& [digits, words] : cases) EXPECT_EQ(spell_integer(digits), words);
  EXPECT_EQ(spell_integer(std::string(37, '1')), spell_digits(std::string(37, '1')));
}

// Reads number words back: an independent inverse.
int64_t value_of_words(std::string words) {
  static const std::map<std::string, int64_t> kValues = {
      {"zero", 0},     {"one", 1},      {"two", 2},        {"three", 3},     {"four", 4},
      {"five", 5},     {"six", 6},      {"seven", 7},      {"eight", 8},     {"nine", 9},
      {"ten", 10},     {"eleven", 11},  {"twelve", 12},    {"thirteen", 13}, {"fourteen", 14},
      {"fifteen", 15}, {"sixteen", 16}, {"seventeen", 17}, {"eighteen", 18}, {"nineteen", 19},
      {"twenty", 20},  {"thirty", 30},  {"forty", 40},     {"fifty", 50},    {"sixty", 60},
      {"seventy", 70}, {"eighty", 80},  {"ninety", 90}};
  int64_t total = 0, group = 0;
  for (char& c : words) c = c == '-' ? ' ' : c;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    if (word == "hundred") {
      group *= 100;
    } else if (word == "thousand" || word == "million" || word == "billion") {
      total += group * (word == "thousand" ? 1'000 : word == "million" ? 1'000'000 : 1'000'000'000);
      group = 0;
    } else {
      group += kValues.at(word);
    }
  }
  return total + group;
}

TEST(SpellInteger, SpelledNumbersReadBackTheSame) {
  std::mt19937_64 random(5);
  for (int64_t n = 0; n < 20'000; ++n) ASSERT_EQ(value_of_words(spell_integer(std::to_string(n))), n);
  for (int i = 0; i < 20'000; ++i) {
    const auto n = static_cast<int64_t>(random() % 1'000'000'000'000);
    ASSERT_EQ(value_of_words(spell_integer(std::to_string(n))), n);
  }
}

TEST(SpellOrdinal, KnownNumbers) {
  const std::pair<const char*, const char*> cases[] = {{"1", "first"},
                                                       {"2", "second"},
                                                       {"3", "third"},
                                                       {"4", "fourth"},
                                                       {"5", "fifth"},
                                                       {"8", "eighth"},
                                                       {"9", "ninth"},
                                                       {"11", "eleventh"},
                                                       {"12", "twelfth"},
                                                       {"20", "twentieth"},
                                                       {"21", "twenty-first"},
                                                       {"90", "ninetieth"},
                                                       {"100", "one hundredth"},
                                                       {"101", "one hundred first"},
                                                       {"1000", "one thousandth"},
                                                       {"0", "zeroth"}};
  for (const auto& [digits, words] : cases) EXPECT_EQ(spell_ordinal(digits), words);
}

TEST(SpellYear, KnownYears) {
  const std::pair<int, const char*> cases[] = {{1984, "nineteen eighty-four"},
                                               {1905, "nineteen oh five"},
                                               {1900, "nineteen hundred"},
                                               {2000, "two thousand"},
                                               {2005, "two thousand five"},
                                               {2010, "twenty ten"},
                                               {2026, "twenty twenty-six"},
                                               {1066, "ten sixty-six"},
                                               {1000, "one thousand"},
                                               {1776, "seventeen seventy-six"},
                                               {79, "seventy-nine"},
                                               {476, "four seventy-six"},
                                               {9999, "ninety-nine ninety-nine"},
                                               {0, "zero"},
                                               {3000, "three thousand"}};
  for (const auto& [year, words] : cases) EXPECT_EQ(spell_year(year), words);
}

TEST(Spelling, SpellsDigitsDecimalsFractionsModelsAndPlurals) {
  EXPECT_EQ(spell_digits("007"), "zero zero seven");
  EXPECT_EQ(spell_decimal("3", "14"), "three point one four");
  EXPECT_EQ(spell_decimal("", "05"), "point zero five");
  EXPECT_EQ(spell_fraction("1", "2"), "one half");
  EXPECT_EQ(spell_fraction("3", "2"), "three halves");
  EXPECT_EQ(spell_fraction("3", "4"), "three quarters");
  EXPECT_EQ(spell_fraction("2", "3"), "two thirds");
  EXPECT_EQ(spell_fraction("5", "22"), "five twenty-seconds");
  EXPECT_EQ(spell_model_number("380"), "three eighty");
  EXPECT_EQ(spell_model_number("101"), "one oh one");
  EXPECT_EQ(spell_model_number("200"), "two hundred");
  EXPECT_EQ(spell_model_number("1080"), "ten eighty");
  EXPECT_EQ(spell_model_number("19"), "nineteen");
  EXPECT_EQ(spell_model_number("07"), "zero seven");
  EXPECT_EQ(spell_model_number("12345"), "one two three four five");
  EXPECT_EQ(plural_of("nineteen eighty"), "nineteen eighties");
  EXPECT_EQ(plural_of("two thousand"), "two thousands");
}

}  // namespace
}  // namespace shoal::text
