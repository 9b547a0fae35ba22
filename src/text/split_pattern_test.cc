#include "text/split_pattern.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/fixtures_testing.h"

namespace shoal::text {
namespace {

std::vector<std::string> pieces_of(const SplitPattern& pattern, std::string_view text) {
  std::vector<std::string> pieces;
  pattern.split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

constexpr std::string_view kPattern =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s*[\r\n]+|\s+(?!\S)|\s+)";

TEST(SplitPattern, WithoutJitThePiecesAreTheSame) {
  const SplitPattern with_jit(kPattern, "x"), without(std::string("(*NO_JIT)") + std::string(kPattern), "x");
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const std::string text = random_text(random, 300);
    ASSERT_EQ(pieces_of(with_jit, text), pieces_of(without, text)) << "seed " << seed;
  }
  // Long runs, where the interpreter meets its limits first.
  for (const char letter : {'a', ' ', '\n', '!'}) {
    const std::string run(1'000'000, letter);
    EXPECT_EQ(pieces_of(with_jit, run), pieces_of(without, run)) << "run of " << letter;
  }
}

TEST(SplitPattern, PiecesJoinedAreTheText) {
  const SplitPattern some_words("b+|x*", "x");  // gaps and empty matches
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const std::string text = random_text(random, 100);
    std::string joined;
    for (const std::string& piece : pieces_of(some_words, text)) {
      ASSERT_FALSE(piece.empty());
      joined += piece;
    }
    ASSERT_EQ(joined, text) << "seed " << seed;
  }
  EXPECT_EQ(pieces_of(some_words, "aabbéx"), (std::vector<std::string>{"aa", "bb", "é", "x"}));
}

TEST(SplitPattern, RefusesWhatItCannotCompile) {
  for (const char* pattern : {"(", "[", "a**b(", "\\w", "\\bx", "\\C", "(?<n", "\\"})
    EXPECT_THROW(SplitPattern(pattern, "x"), Error) << pattern;
  EXPECT_THROW(SplitPattern(std::string(20'000, 'a'), "x"), Error);
}

}  // namespace
}  // namespace shoal::text
