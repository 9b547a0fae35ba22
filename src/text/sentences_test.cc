#include "text/sentences.h"

#include <ctime>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/characters.h"
#include "text/fixtures_testing.h"

namespace shoal::text {
namespace {

using Utterances = std::vector<std::string>;

std::string without_white_space(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += character_bytes(text[at])) {
    if (!is_white_space(code_point_at(text, at))) append_utf8(out, code_point_at(text, at));
  }
  return out;
}

// Joins the utterances with " | ": easier to read than lists.
std::string split(std::string_view text, int max_bytes) {
  std::string out;
  for (const std::string& utterance : split_utterances(text, max_bytes))
    out += (out.empty() ? "" : " | ") + utterance;
  return out;
}

TEST(SplitUtterances, KeepsEveryCharacterInOrderWithinTheLimit) {
  for (uint32_t seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    const std::string text = random_text(random, random() % 400);
    const int limit = 16 + static_cast<int>(random() % 120);
    std::string joined;
    for (const std::string& utterance : split_utterances(text, limit)) {
      ASSERT_FALSE(utterance.empty()) << "seed " << seed;
      ASSERT_LE(utterance.size(), static_cast<size_t>(limit)) << "seed " << seed;
      ASSERT_EQ(strip_white_space(utterance), utterance) << "seed " << seed;
      ASSERT_EQ(find_invalid_utf8(utterance), std::string::npos) << "seed " << seed;
      joined += utterance;
    }
    ASSERT_EQ(without_white_space(joined), without_white_space(text)) << "seed " << seed;
  }
}

TEST(SplitUtterances, PacksAsManyWholeSentencesAsFit) {
  EXPECT_EQ(split("One two. Three four! Five six? Seven.", 20), "One two. Three four! | Five six? Seven.");
  EXPECT_EQ(split("One two. Three four! Five six? Seven.", 19), "One two. | Three four! | Five six? Seven.");
  EXPECT_EQ(split("  short  ", 200), "short");
  EXPECT_EQ(split(" \n\t ", 200), "");
  EXPECT_EQ(split("", 200), "");
}

TEST(SplitUtterances, FullWidthSentencesNeedNoSpaces) {
  EXPECT_EQ(split("你好世界。今天天气。好！", 20), "你好世界。 | 今天天气。 | 好！");
  EXPECT_EQ(split("你好，世界和平万岁啊", 16), "你好， | 世界和平万 | 岁啊");
}

TEST(SplitUtterances, DotsInsideSentencesDoNotSplit) {
  EXPECT_EQ(split("We met Dr. Smith and Mr. Jones. They left.", 32),
            "We met Dr. Smith and Mr. Jones. | They left.");
  EXPECT_EQ(split("It costs 3.50 in the U.S. today. Pay now.", 32),
            "It costs 3.50 in the U.S. today. | Pay now.");
  EXPECT_EQ(split("J. R. R. Tolkien wrote it. George W. Bush read.", 26),
            "J. R. R. Tolkien wrote it. | George W. Bush read.");
  EXPECT_EQ(split("Use tools, e.g. a Saw, i.e. No. 5. Then rest.", 34),
            "Use tools, e.g. a Saw, i.e. No. 5. | Then rest.");
  EXPECT_EQ(split("Apples, pears, etc. Then we left.", 28), "Apples, pears, etc. | Then we left.");
  EXPECT_EQ(split("See example.com or v1.2.3 now. Bye now.", 30),
            "See example.com or v1.2.3 now. | Bye now.");
  EXPECT_EQ(split("Come at 8 a.m. tomorrow, Sir. Be there.", 29),
            "Come at 8 a.m. tomorrow, Sir. | Be there.");
}

TEST(SplitUtterances, EllipsesAndQuotesStayWithTheirSentence) {
  EXPECT_EQ(split("He said \"Go home.\" Then he left.", 20), "He said \"Go home.\" | Then he left.");
  EXPECT_EQ(split("(He was late.) We had gone.", 16), "(He was late.) | We had gone.");
  EXPECT_EQ(split("“Stop!” she cried. Nobody did.", 24), "“Stop!” she cried. | Nobody did.");
  EXPECT_EQ(split("Well... I never did. So there.", 20), "Well... I never did. | So there.");
  EXPECT_EQ(split("I wait… and wait. Then go.", 19), "I wait… and wait. | Then go.");
}

TEST(SplitUtterances, LongSentencesAreCutAtClausesThenSpacesThenCharacters) {
  EXPECT_EQ(split("when the rain stops, we walk home; then we eat", 24),
            "when the rain stops, | we walk home; | then we eat");
  EXPECT_EQ(split("aaaa bbbb cccc dddd eeee", 16), "aaaa bbbb cccc | dddd eeee");
  EXPECT_EQ(split(std::string(40, 'a'), 16), "aaaaaaaaaaaaaaaa | aaaaaaaaaaaaaaaa | aaaaaaaa");
  // "Oh," by itself would be a fragment, and so would "uvwx".
  EXPECT_EQ(split("Oh, abcd efgh ijkl mnop qrst uvwx", 30), "Oh, abcd efgh ijkl | mnop qrst uvwx");
}

TEST(SplitUtterances, SplitsAtLineEnds) {
  EXPECT_EQ(split("A title\nThe first line", 18), "A title | The first line");
  EXPECT_EQ(split("wrapped in the\nmiddle of it. End it.", 30), "wrapped in the\nmiddle of it. | End it.");
  EXPECT_EQ(split("one para\n\nanother para", 20), "one para | another para");
  EXPECT_EQ(split("1. First thing\n2. Second thing", 20), "1. First thing | 2. Second thing");
}

TEST(SplitUtterances, MarkersAndAccentsStayWhole) {
  EXPECT_EQ(split("He ran off (in a hurry tone) home again", 24),
            "He ran off | (in a hurry tone) home | again");
  const std::string tag = "[in a voice that nobody in this town has ever heard. before, I think]";
  EXPECT_EQ(split("Go on, then. " + tag + " Now.", 70), "Go on, then. | " + tag + " | Now.");
  std::string accents;
  for (int i = 0; i < 10; ++i) accents += "e\u0301";
  for (const std::string& utterance : split_utterances(accents, 16)) EXPECT_EQ(utterance.size() % 3, 0u);
}

TEST(SplitUtterances, RefusesInvalidArguments) {
  EXPECT_THROW(split_utterances("abc", 15), Error);
  EXPECT_THROW(split_utterances("ab\xff", 100), Error);
}

TEST(SplitUtterances, AMegabyteOfAnythingIsQuick) {
  std::mt19937 random(3);
  std::string dots;
  while (dots.size() < 1'000'000) dots += "a. ";
  for (const std::string& text :
       {std::string(1'000'000, 'a'), std::string(1'000'000, '('), std::string(1'000'000, '['),
        std::string(1'000'000, '.'), std::string(1'000'000, '"'), std::string(1'000'000, ' '), dots,
        random_text(random, 600'000)}) {
    for (const int limit : {16, 200, 100'000}) {
      const std::clock_t begin = std::clock();  // others may compute, too
      split_utterances(text, limit);
      EXPECT_LT(std::clock() - begin, 5 * CLOCKS_PER_SEC) << text.substr(0, 8);
    }
  }
}

TEST(IsSpeakable, NeedsALetterOrADigit) {
  for (const char* text : {"a", "...é", "你", "(5)", "\u0928", "½"}) EXPECT_TRUE(is_speakable(text)) << text;
  for (const char* text : {"", "...", " \n", "—!?", "😀", "。，"}) EXPECT_FALSE(is_speakable(text)) << text;
}

}  // namespace
}  // namespace shoal::text
