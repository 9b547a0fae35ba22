#include "text/phonemes/timestamps.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace shoal::phonemes {
namespace {

TEST(WordTimes, MatchAHandComputedExample) {
  // pad h i _ y o u . pad, in frames of 25 ms.
  const std::vector<Token> tokens = {{"hi", "hi", true}, {"you", "you", false}, {".", ".", false}};
  const std::vector<int64_t> durations = {5, 2, 3, 4, 1, 2, 3, 6, 8};
  // Of the opening 5 frames 2 are silence: 0.05 s. "hi": 5 frames and half of the space's 4: 7 frames.
  // "you": from there (the other half of the space first), 2 + 6 frames. ".": 6 frames.
  const std::vector<WordTime> expected = {{0, 0.05, 0.225}, {1, 0.225, 0.425}, {2, 0.425, 0.575}};
  const std::vector<WordTime> times = word_times(tokens, durations);
  ASSERT_EQ(times.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(times[i].token, i);
    EXPECT_DOUBLE_EQ(times[i].start_s, expected[i].start_s) << i;
    EXPECT_DOUBLE_EQ(times[i].end_s, expected[i].end_s) << i;
  }
}

TEST(WordTimes, OddSpacesAreSplitInHalf) {
  const std::vector<Token> tokens = {{"a", "a", true}, {"b", "b", false}};
  const std::vector<WordTime> times = word_times(tokens, std::vector<int64_t>{1, 2, 3, 2, 1});
  EXPECT_EQ(times, (std::vector<WordTime>{{0, 0, 7 / 80.0}, {1, 7 / 80.0, 14 / 80.0}}));
}

TEST(WordTimes, SilentTokensHaveNoTimes) {
  const std::vector<Token> tokens = {{"*", "", false}, {"a", "a", true}, {"~", "", true}, {"b", "b", false}};
  const std::vector<WordTime> times = word_times(tokens, std::vector<int64_t>{3, 2, 4, 6, 2, 1});
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0], (WordTime{1, 0, 8 / 80.0}));  // 2 frames and half of the first space
  EXPECT_EQ(times[1], (WordTime{3, 20 / 80.0, 28 / 80.0}));
}

TEST(WordTimes, EndWithTheSumOfTheFrames) {
  std::vector<Token> tokens;
  std::vector<int64_t> durations = {7};
  int64_t sum = 7 - 3;
  for (int i = 0; i < 20; ++i) {
    tokens.push_back({"w", "ab", i < 19});
    for (int k = 0; k < (i < 19 ? 3 : 2); ++k) {
      durations.push_back((i * 3 + k) % 5 + 1);
      sum += durations.back();
    }
  }
  durations.push_back(4);
  const std::vector<WordTime> times = word_times(tokens, durations);
  ASSERT_EQ(times.size(), 20u);
  EXPECT_DOUBLE_EQ(times.back().end_s, static_cast<double>(sum) * 0.025);
  for (size_t i = 1; i < times.size(); ++i) EXPECT_EQ(times[i].start_s, times[i - 1].end_s);
}

TEST(WordTimes, InconsistentLengthsAreOurFault) {
  const std::vector<Token> tokens = {{"a", "a", false}};
  EXPECT_THROW(word_times(tokens, std::vector<int64_t>{1, 1}), Error);
  EXPECT_TRUE(word_times({}, std::vector<int64_t>{1, 1}).empty());
}

}  // namespace
}  // namespace shoal::phonemes
