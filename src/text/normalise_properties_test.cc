// What holds for any text: normalised text stays, brackets are kept, and time is proportional to the length.
#include <ctime>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/fixtures_testing.h"
#include "text/normalise.h"

namespace shoal::text {
namespace {

// Each rewritten word is examined by the next rule; this must not continue from one rule to the next.
TEST(NormaliseEnglish, ChainsEnd) {
  for (const std::string link :
       {"@", "@&", "&@", "@-",    "#",    "-",    "+",    "~",    "%",     "°",      "=",     "½", "½@",
        "$", "@$", ".",  "Ave. ", "St. ", "Dr. ", "Jr. ", "No. ", "etc. ", "Part V", "a.com", "<|"}) {
    for (const char* const start : {"", "5", "X ", "am "}) {
      for (const char* const end : {"", "R", "5", "&", "-5", "5\u4F60", "11/21/2026", "(\u2026f"}) {
        std::string text = start;
        for (int i = 0; i < 9; ++i) text += link;
        text += end;
        const std::string once = normalise_english(text);
        EXPECT_EQ(normalise_english(once), once) << text;
      }
    }
  }
  for (const char* const text :
       {"@@@@@@@@@R", "J@@@@@&(\u2026f", "X St. Ave. Rd. Blvd. St. Ave. Rd. Blvd."}) {
    const std::string once = normalise_english(text);
    EXPECT_EQ(normalise_english(once), once) << text;
  }
}

TEST(NormaliseEnglish, NormalisingTwiceEqualsOnce) {
  const char* const pieces[] = {
      "Dr.",  "St.", "Main", "No.",   "5",    "1,234", "3.14", "$",      "€",  "-",  "–",   "/",  ":",
      "30",   "pm",  "a.m.", "Nov",   "21",   "2026",  "km",   "%",      "°C", "&",  "@",   "x",  ".",
      ",",    "½",   "1/2",  "Henry", "VIII", "I",     "etc.", "'80s",   "th", "+",  "=",   "#",  "(",
      ")",    "R",   "Ave.", "°",     "±",    "§",     "<",    ">",      "'",  "é½", "US$", "-5", "…",
      "1984", "007", "www.", "a.com", "<|",   "|>",    "s",    "\u4F60", "é",  "~",  "\n"};
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < 8; ++i) {
      text += pieces[random() % std::size(pieces)];
      if (random() % 2) text += ' ';
    }
    const std::string once = normalise_english(text);
    ASSERT_EQ(normalise_english(once), once) << "seed " << seed << ": " << text;
    ASSERT_EQ(find_invalid_utf8(once), std::string::npos) << text;
  }
  // Few kinds of pieces at a time, so that long runs and alternations of them occur.
  for (uint32_t seed = 0; seed < 20'000; ++seed) {
    std::mt19937 random(seed);
    const char* kinds[3];
    for (const char*& kind : kinds) kind = pieces[random() % std::size(pieces)];
    const bool blanks = random() % 2;
    std::string text;
    for (int i = 0; i < 16; ++i) {
      text += kinds[random() % std::size(kinds)];
      if (blanks && random() % 2) text += ' ';
    }
    const std::string once = normalise_english(text);
    ASSERT_EQ(normalise_english(once), once) << "seed " << seed << ": " << text;
  }
  for (uint32_t seed = 0; seed < 2'000; ++seed) {
    std::mt19937 random(seed);
    const std::string once = normalise_english(random_text(random, 100));
    ASSERT_EQ(normalise_english(once), once) << "seed " << seed;
  }
}

TEST(NormaliseEnglish, BracketsAreKeptWhereTheyInstruct) {
  const auto kept = [](const std::string& text) { return normalise_english(text, Brackets::keep); };
  EXPECT_EQ(kept("[pause for 2 s] It is 5 kg. [50% louder, Dr. No]"),
            "[pause for 2 s] It is five kilograms. [50% louder, Dr. No]");
  EXPECT_EQ(kept("5 [2] 5[2]5"), "five [2] five[2]five");
  EXPECT_EQ(kept("[2"), "[two");                   // never closes
  EXPECT_EQ(kept("[2\n2]"), "[two\ntwo]");         // not within a line
  EXPECT_EQ(kept("[2 [3] 4]"), "[two [3] four]");  // the innermost
  EXPECT_EQ(kept("\u4F60[\u4F60 2]"), "\u4F60[\u4F60 2]");
  EXPECT_EQ(normalise_english("[2]"), "[two]");
  for (uint32_t seed = 0; seed < 2'000; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (const char* bracket : {"[", "]", "[", "[", "]"})
      text += random_text(random, random() % 12) + bracket;
    const std::string once = kept(text);
    ASSERT_EQ(kept(once), once) << "seed " << seed;
  }
}

TEST(NormaliseEnglish, InvalidUtf8IsTheCallersFault) { EXPECT_THROW(normalise_english("5 \xff"), Error); }

TEST(NormaliseEnglish, AMegabyteOfAnythingIsQuick) {
  std::mt19937 random(3);
  for (const std::string& unit :
       {std::string("a"), std::string("1"), std::string("1 "), std::string("111 "), std::string("111-"),
        std::string("1."), std::string("1/2 "), std::string("$1 "), std::string("("), std::string("<|"),
        std::string("a@"), std::string("a."), std::string("["), std::string("Dr. "), std::string("1,111"),
        std::string("&"), std::string("Nov 5 "), std::string("\u00BD"), random_text(random, 50'000)}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    const std::clock_t begin = std::clock();  // others may compute, too
    normalise_english(text);
    normalise_english(text, Brackets::keep);
    EXPECT_LT(std::clock() - begin, 8 * CLOCKS_PER_SEC) << unit.substr(0, 8);
  }
}

}  // namespace
}  // namespace shoal::text
