#include "text/phonemes/chunks.h"

#include <gtest/gtest.h>
#include <random>

#include "base/error.h"

namespace shoal::phonemes {
namespace {

std::vector<std::string> cut(std::string_view phonemes, ChunkRules rules) {
  std::vector<std::string> out;
  for (const Chunk& chunk : Chunker(rules).cut(split_phonemes(phonemes))) {
    EXPECT_EQ(chunk.phonemes, phonemes_of(chunk.tokens));
    out.push_back(chunk.phonemes);
  }
  return out;
}

using Strings = std::vector<std::string>;

TEST(Chunker, CutsAfterTheLastSentenceThatFits) {
  EXPECT_EQ(cut("aaa. bbb. ccc ddd", {.max_phonemes = 16}), (Strings{"aaa. bbb.", "ccc ddd"}));
  EXPECT_EQ(cut("aaa. bbb, ccc ddd", {.max_phonemes = 16}), (Strings{"aaa.", "bbb, ccc ddd"}));
  EXPECT_EQ(cut("aaa. bbb.", {.max_phonemes = 16}), (Strings{"aaa. bbb."}));
}

TEST(Chunker, CutsAtColonsThenCommasThenSpacesThenAnywhere) {
  EXPECT_EQ(cut("aaa, bbb; ccc dddd", {.max_phonemes = 16}), (Strings{"aaa, bbb;", "ccc dddd"}));
  EXPECT_EQ(cut("aaa, bbb ccc dddd", {.max_phonemes = 16}), (Strings{"aaa,", "bbb ccc dddd"}));
  EXPECT_EQ(cut("aaaa bbbb cccc dddd", {.max_phonemes = 16}), (Strings{"aaaa bbbb cccc", "dddd"}));
  EXPECT_EQ(cut("aaaaaaaaaaaaaaaaaaaaaaaaa", {.max_phonemes = 16}),
            (Strings{"aaaaaaaaaaaaaaa", "aaaaaaaaaa"}));
}

TEST(Chunker, ClosingMarksStayWithTheirSentence) {
  EXPECT_EQ(cut("(aaa.) bbb ccc dd", {.max_phonemes = 16}), (Strings{"(aaa.)", "bbb ccc dd"}));
  EXPECT_EQ(cut("“aaa.” bbb ccc dd", {.max_phonemes = 16}), (Strings{"“aaa.”", "bbb ccc dd"}));
}

TEST(Chunker, PrefersACutWhoseRestFits) {
  // After "a." 15 phonemes and " ggg" would be left, which do not fit: the comma is better.
  EXPECT_EQ(cut("a. bbbb, ccc ddd ggg", {.max_phonemes = 16}), (Strings{"a. bbbb,", "ccc ddd ggg"}));
}

TEST(Chunker, LengthMarksStayWithTheirVowel) {
  for (const std::string& chunk : cut("aːaːaːaːaːaːaːaːaːaːaːaː", {.max_phonemes = 16})) {
    EXPECT_FALSE(chunk.starts_with("ː")) << chunk;
  }
}

TEST(Chunker, ChunksOfOnlyMarksAreDropped) {
  EXPECT_EQ(cut("...", {}), Strings{});
  EXPECT_EQ(cut("", {}), Strings{});
}

std::string words(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += i ? " wərd" : "wərd";
  return out;
}

TEST(FirstChunk, EndsWithTheFirstClause) {
  const std::string rest = words(30) + ".";
  EXPECT_EQ(cut(words(6) + ", " + rest, {.first_words = 12})[0], words(6) + ",");
  EXPECT_EQ(cut(words(6) + ".” " + rest, {.first_words = 12})[0], words(6) + ".”");
  // Too short a clause is joined to the next, unless that is too long.
  EXPECT_EQ(cut(words(2) + ", " + words(5) + ". " + rest, {.first_words = 12})[0],
            words(2) + ", " + words(5) + ".");
  EXPECT_EQ(cut(words(2) + ", " + rest, {.first_words = 12})[0], words(2) + ",");
  EXPECT_EQ(cut(words(1) + ", " + rest, {.first_words = 12})[0], words(1) + ", " + words(11));
}

TEST(FirstChunk, EndsAfterAFewWordsWithoutAClause) {
  EXPECT_EQ(cut(words(40) + ".", {.first_words = 12})[0], words(12));
  EXPECT_EQ(cut(words(16) + ".", {.first_words = 12}),
            Strings{words(16) + "."});  // a rest of four is not a chunk
}

TEST(FirstChunk, LaterChunksAreLonger) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += words(7) + ". ";
  const Strings chunks = cut(text, {.first_words = 12});
  ASSERT_GE(chunks.size(), 4u);
  EXPECT_EQ(chunks[0], words(7) + ".");
  EXPECT_LE(count_code_points(chunks[1]), 200);
  EXPECT_GT(count_code_points(chunks[1]), 150);
  EXPECT_GT(count_code_points(chunks[2]), 450);
}

TEST(FirstChunk, OnlyTheFirstChunkOfTheTextIsShort) {
  Chunker chunker({.first_words = 12});
  EXPECT_EQ(chunker.cut(split_phonemes(words(6) + ", " + words(20) + ".")).size(), 2u);
  EXPECT_EQ(chunker.cut(split_phonemes(words(6) + ", " + words(20) + ".")).size(), 1u);
}

TEST(Chunker, NumbersOutOfRangeAreRefused) {
  for (const ChunkRules& rules : {ChunkRules{.max_phonemes = 15},
                                  {.max_phonemes = 511},
                                  {.first_words = -1},
                                  {.first_words = 101},
                                  {.second_phonemes = 0}})
    EXPECT_THROW(Chunker{rules}, Error);
}

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

TEST(Chunker, NothingIsLostAndEveryLimitHolds) {
  const char* units[] = {"a",  "ˈ",  "ː", "t", "ðə", " ", " ",      ". ",
                         ", ", "; ", ".", "—", ")",  "“", "\u0303", "…"};
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    std::string text = "a ";
    const size_t kinds = seed % 3 == 0 ? 5 : 16;  // also without any space
    for (size_t n = random() % 3000; n > 0; --n) text += units[random() % kinds];
    const ChunkRules rules{.max_phonemes = 16 + static_cast<int>(random() % 495),
                           .first_words = static_cast<int>(random() % 3) * 8,
                           .second_phonemes = 16 + static_cast<int>(random() % 495)};
    std::string joined;
    for (const std::string& chunk : cut(text, rules)) {
      EXPECT_LE(count_code_points(chunk), rules.max_phonemes);
      EXPECT_FALSE(chunk.empty() || chunk.front() == ' ' || chunk.back() == ' ');
      joined += chunk;
    }
    // A last chunk of only marks may be dropped.
    const std::string whole = without_spaces(phonemes_of(split_phonemes(text)));
    const std::string kept = without_spaces(joined);
    std::string bare_whole, bare_kept;
    for (const Token& token : split_phonemes(whole))
      bare_whole += is_mark(token.phonemes) ? "" : token.phonemes;
    for (const Token& token : split_phonemes(kept))
      bare_kept += is_mark(token.phonemes) ? "" : token.phonemes;
    ASSERT_EQ(bare_kept, bare_whole) << "seed " << seed;
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(Chunker, HostileLengths) {
  for (const char* unit : {"a", "ˈ", "ː", ".", "a.", "a ", "(", "—"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += unit;
    std::string joined;
    for (const std::string& chunk : cut(text, {.first_words = 12})) {
      EXPECT_LE(count_code_points(chunk), 510);
      joined += chunk;
    }
    if (!is_mark(unit)) {
      EXPECT_EQ(without_spaces(joined), without_spaces(text)) << unit;
    }
  }
}

TEST(SplitPhonemes, JoinsBackToTheInput) {
  EXPECT_EQ(phonemes_of(split_phonemes(" həlˈO,  wˈɜɹld! (ˈA) ")), "həlˈO, wˈɜɹld! (ˈA)");
  EXPECT_EQ(split_phonemes("a b.").size(), 3u);
  EXPECT_TRUE(split_phonemes("").empty());
  EXPECT_THROW(split_phonemes("\xC3"), Error);
}

TEST(TidySpaces, KeepsOneSpaceBetweenSoundsAndNoneAtTheEnds) {
  std::vector<Token> tokens = {
      {"*", "", true}, {"a", "a", true}, {"*", "", true}, {"b", "b", true}, {"*", "", true}};
  tidy_spaces(tokens);
  EXPECT_EQ(phonemes_of(tokens), "a b");
  EXPECT_EQ(tokens[0].space_after, false);
  EXPECT_EQ(tokens[1].space_after, true);
  EXPECT_EQ(tokens[2].space_after, false);
  EXPECT_EQ(tokens[3].space_after, false);
}

}  // namespace
}  // namespace shoal::phonemes
