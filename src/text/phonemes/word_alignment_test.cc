#include "text/phonemes/word_alignment.h"

#include <gtest/gtest.h>
#include <random>

namespace shoal::phonemes {
namespace {

std::string align(const std::vector<std::string>& words, std::string_view clause,
                  const std::vector<std::string>& alone) {
  const std::vector<Token> tokens = align_words(words, clause, alone);
  EXPECT_EQ(tokens.size(), words.size());
  EXPECT_EQ(phonemes_of(tokens), clause);
  std::string out;
  for (const Token& token : tokens) out += token.phonemes + (token.space_after ? "_" : "|");
  return out;
}

TEST(AlignWords, AlignsOneGroupPerWord) {
  EXPECT_EQ(align({"the", "sky"}, "ðə skˈI", {"ðə", "skˈI"}), "ðə_skˈI|");
}

TEST(AlignWords, AlignsWordsThatEspeakJoined) {
  EXPECT_EQ(align({"port", "was", "the", "color"}, "pˈɔɹt wʌzðə kˈʌləɹ", {"pˈɔɹt", "wʌz", "ðə", "kˈʌləɹ"}),
            "pˈɔɹt_wʌz|ðə_kˈʌləɹ|");
  EXPECT_EQ(align({"I", "am"}, "Iəm", {"ˈI", "ˈæm"}), "I|əm|");
}

TEST(AlignWords, AlignsAWordOfSeveralGroups) {
  EXPECT_EQ(align({"an", "nginx", "box"}, "ən ˈɛnʤɪn ˌɛks bˈɑks", {"æn", "ˈɛnʤɪn ˌɛks", "bˈɑks"}),
            "ən_ˈɛnʤɪn ˌɛks_bˈɑks|");
}

TEST(AlignWords, AlignsJoinedAndSplitWordsInOneClause) {
  // As many groups as words, but counting would assign every one wrongly.
  EXPECT_EQ(align({"nginx", "was", "the", "best"}, "ˈɛnʤɪn ˌɛks wʌzðə bˈɛst",
                  {"ˈɛnʤɪn ˌɛks", "wʌz", "ðə", "bˈɛst"}),
            "ˈɛnʤɪn ˌɛks_wʌz|ðə_bˈɛst|");
}

TEST(AlignWords, SilentWordsGetNoPhonemes) {
  EXPECT_EQ(align({"a", "~", "b"}, "A bi", {"A", "", "bi"}), "A_|bi|");
  EXPECT_EQ(align({"~", "~"}, "", {"", ""}), "||");
}

TEST(AlignWords, LengthMarksStayWithTheirVowel) {
  EXPECT_EQ(align({"tu", "a"}, "tuːa", {"tu", "a"}), "tuː|a|");
}

TEST(AlignWords, NoPhonemeIsLost) {
  std::mt19937 random(7);
  const char* sounds[] = {"a", "t", "ˈ", "ː", " ", "ɛ", "\u0303"};
  const auto some = [&](size_t most) {
    std::string out;
    for (size_t n = random() % (most + 1); n > 0; --n) out += sounds[random() % 7];
    return out;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> words(1 + random() % 6, "w");
    std::vector<std::string> alone;
    for (size_t i = 0; i < words.size(); ++i) alone.push_back(some(5));
    // The form of map_espeak's output: single spaces, none at the ends.
    std::string clause;
    for (const char c : some(30)) {
      if (c != ' ' || (!clause.empty() && clause.back() != ' ')) clause += c;
    }
    if (clause.ends_with(' ')) clause.pop_back();
    align(words, clause, alone);
    ASSERT_FALSE(HasFailure()) << "round " << round << ": " << clause;
  }
}

TEST(AlignWords, VeryLongClausesAreDividedEvenly) {
  std::string clause;
  for (int i = 0; i < 700; ++i) clause += i % 100 == 99 ? "a " : "ab";
  clause += "c";
  const std::vector<std::string> words(4, "w");
  const std::vector<std::string> alone(4, std::string(500, 'a'));
  const std::vector<Token> tokens = align_words(words, clause, alone);
  EXPECT_EQ(phonemes_of(tokens), clause);
  EXPECT_EQ(tokens[0].phonemes, clause.substr(0, clause.find(' ')));
}

}  // namespace
}  // namespace shoal::phonemes
