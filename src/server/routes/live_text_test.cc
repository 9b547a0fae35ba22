#include "server/routes/live_text.h"

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/sentences.h"
#include "text/utf8.h"

namespace shoal::server {
namespace {

using Segments = std::vector<std::string>;

void take(LiveText& text, Segments& into) {
  while (auto segment = text.next()) into.push_back(*segment);
}

// The segments of a text whose pieces end at `cuts`, flushed at the end.
Segments spoken(const std::string& whole, const std::vector<size_t>& cuts, size_t longest = 200) {
  LiveText text(longest);
  Segments segments;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    text.add(std::string_view(whole).substr(begin, cut - begin));
    take(text, segments);
    begin = cut;
  }
  text.add(std::string_view(whole).substr(begin));
  text.flush();
  take(text, segments);
  EXPECT_EQ(text.pending_bytes(), 0u);
  return segments;
}

std::vector<size_t> every_character(const std::string& whole) {
  std::vector<size_t> cuts;
  for (size_t at = 0; at < whole.size(); at += text::character_bytes(whole[at])) cuts.push_back(at);
  return cuts;
}

std::string joined(const Segments& segments) {
  std::string all;
  for (const std::string& segment : segments) all += segment;
  return all;
}

// How many bytes of `whole` must arrive, one character after the other, before the first segment is there.
size_t bytes_until_first(const std::string& whole) {
  LiveText text(200);
  for (size_t at = 0; at < whole.size();) {
    const size_t bytes = text::character_bytes(whole[at]);
    text.add(std::string_view(whole).substr(at, bytes));
    at += bytes;
    if (text.next()) return at;
  }
  return 0;
}

TEST(LiveText, ASentenceIsReleasedAsSoonAsItsEndIsCertain) {
  EXPECT_EQ(bytes_until_first("Hello there. How are you?"), std::string("Hello there. H").size());
  EXPECT_EQ(bytes_until_first("\u4f60\u597d\u3002\u5f88\u9ad8\u5174"),
            std::string("\u4f60\u597d\u3002\u5f88").size());
  EXPECT_EQ(bytes_until_first("He said \"Go.\" Then"), std::string("He said \"Go.\" T").size());
  EXPECT_EQ(bytes_until_first("One line\nAnother"), std::string("One line\nA").size());
  // Not an end: a small letter, an abbreviation, a number, no next word yet.
  EXPECT_EQ(bytes_until_first("It cost 3.50 or so"), 0u);
  EXPECT_EQ(bytes_until_first("Bread, etc. and milk"), 0u);
  EXPECT_EQ(bytes_until_first("Ask Dr. Smith"), 0u);
  EXPECT_EQ(bytes_until_first("Hello there. \""), 0u);
}

TEST(LiveText, AnUnfinishedMarkerIsNotCut) {
  const std::string text = "(softly. And low) Come in.";
  EXPECT_EQ(bytes_until_first(text), 0u);
  // A bracket that never closes does not delay the text forever.
  EXPECT_EQ(bytes_until_first("(softly. And then a great many words that do not close it, for a while"), 48u);
}

TEST(LiveText, TheFirstSegmentIsShortAndLaterOnesGatherSentences) {
  const std::string text =
      "Well. That was quick. It was also rather long in the end, I think. No. Yes. Maybe, or not at all, who "
      "can tell "
      "from here? A last one.";
  EXPECT_EQ(spoken(text, {}),
            (Segments{"Well.", " That was quick. It was also rather long in the end, I think.",
                      " No. Yes. Maybe, or not at all, who can tell from here? A last one."}));
  // The first may end at a clause, the second not.
  const std::string clauses =
      "It begins with a clause of some length, and goes on with another of some length, and has no end yet";
  EXPECT_EQ(spoken(clauses, {}), (Segments{"It begins with a clause of some length,",
                                           " and goes on with another of some length, and has no end yet"}));
}

TEST(LiveText, TextWithoutWordsWaitsForWords) {
  EXPECT_EQ(spoken("... ?! \n\n \u2026 Hello. You", {}), (Segments{"... ?! \n\n \u2026 Hello.", " You"}));
  EXPECT_EQ(spoken("?!", {}), Segments{"?!"});
  EXPECT_EQ(spoken("", {}), Segments{});
}

TEST(LiveText, ALongSentenceIsCutAtAClauseASpaceOrACharacter) {
  const std::string words(30, 'a');
  for (const Segments& segments :
       {spoken(words + " " + words + " " + words, {}, 50), spoken(std::string(150, 'x'), {}, 50)}) {
    EXPECT_GT(segments.size(), 1u);
    for (const std::string& segment : segments) EXPECT_LE(segment.size(), 50u);
  }
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\u6c34";
  for (const std::string& segment : spoken(wide, {}, 50)) EXPECT_NO_THROW(text::require_utf8(segment));
}

TEST(LiveText, FlushMayEndASegmentAnywhere) {
  LiveText text(200);
  text.add("Hel");
  EXPECT_FALSE(text.next());
  EXPECT_EQ(text.pending_bytes(), 3u);
  text.flush();
  EXPECT_EQ(text.pending_bytes(), 3u);
  EXPECT_EQ(text.next(), "Hel");
  EXPECT_EQ(text.pending_bytes(), 0u);
  text.flush();
  EXPECT_FALSE(text.next());
  text.add("lo there. Y");
  EXPECT_FALSE(text.next());  // the second one is longer
  text.flush();
  EXPECT_EQ(text.next(), "lo there. Y");
}

TEST(LiveText, BytesThatAreNotUtf8AreRefusedAndNothingIsAdded) {
  LiveText text(200);
  text.add("a");
  EXPECT_THROW(text.add("\xE6\xB0"), Error);
  EXPECT_THROW(text.add("\xFF"), Error);
  EXPECT_EQ(text.pending_bytes(), 1u);
}

// Texts with many of the characters that the rules examine.
std::string random_text(std::mt19937_64& random) {
  static const std::vector<std::string> kParts = {"a",
                                                  "word",
                                                  "Word",
                                                  "I",
                                                  "U.S.",
                                                  "Dr.",
                                                  "etc.",
                                                  "no.",
                                                  "3",
                                                  "3.5",
                                                  "12.",
                                                  ".",
                                                  "!",
                                                  "?",
                                                  "...",
                                                  "\u2026",
                                                  ",",
                                                  ";",
                                                  ":",
                                                  "\u2014",
                                                  "(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  "(in a hurry tone)",
                                                  "\"",
                                                  "'",
                                                  "\u201d",
                                                  "\u201c",
                                                  "\u00ab",
                                                  "\u00bb",
                                                  " ",
                                                  " ",
                                                  " ",
                                                  " ",
                                                  "  ",
                                                  "\n",
                                                  "\n\n",
                                                  "\t",
                                                  "\u00a0",
                                                  "\u2028",
                                                  "\u3002",
                                                  "\uff01",
                                                  "\uff0c",
                                                  "\u6c34",
                                                  "\u3042",
                                                  "\U0001F41F",
                                                  "e\u0301",
                                                  "\u200d",
                                                  "*",
                                                  "_",
                                                  "\u00bf",
                                                  "<|speaker:0|>",
                                                  "\u0645\u061f",
                                                  "                    ",
                                                  "....................",
                                                  "((((((((((((((((((((",
                                                  "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""};
  std::string text;
  const size_t parts = random() % 120;
  for (size_t i = 0; i < parts; ++i) text += kParts[random() % kParts.size()];
  return text;
}

TEST(LiveText, SegmentsHoldTheWholeTextHoweverItIsCut) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    std::mt19937_64 random(seed);
    const std::string text = random_text(random);
    const size_t longest = 50 + random() % 200;
    const Segments whole = spoken(text, {}, longest);
    ASSERT_EQ(joined(whole), text) << seed;
    for (const std::string& segment : whole) {
      ASSERT_FALSE(segment.empty()) << seed;
      ASSERT_LE(segment.size(), longest) << seed;
      ASSERT_NO_THROW(text::require_utf8(segment)) << seed;
    }
    ASSERT_EQ(spoken(text, every_character(text), longest), whole) << seed;
    std::vector<size_t> some;
    for (const size_t cut : every_character(text)) {
      if (random() % 7 == 0) some.push_back(cut);
    }
    ASSERT_EQ(spoken(text, some, longest), whole) << seed;
  }
}

TEST(LiveText, TextAfterAFlushStartsAfresh) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const std::string first = random_text(random), second = random_text(random);
    Segments pieces[2];
    for (const bool slowly : {false, true}) {
      LiveText text(120);
      for (const std::string& part : {first, second}) {
        size_t begin = 0;
        if (slowly) {
          for (const size_t cut : every_character(part)) {
            text.add(std::string_view(part).substr(begin, cut - begin));
            begin = cut;
          }
        }
        text.add(std::string_view(part).substr(begin));
        text.flush();
      }
      take(text, pieces[slowly]);
    }
    ASSERT_EQ(pieces[0], pieces[1]) << seed;
    ASSERT_EQ(joined(pieces[0]), first + second) << seed;
  }
}

}  // namespace
}  // namespace shoal::server
