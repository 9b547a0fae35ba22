#include "runtime/families/kokoro/chunk_joiner.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace shoal::runtime {
namespace {

constexpr int kRate = 24000;

// `lead_ms` of near silence, a loud tone, and `tail_ms` of near silence.
std::vector<float> tone(int lead_ms, int sound_ms, int tail_ms) {
  std::vector<float> samples;
  const auto add = [&](int ms, float level) {
    for (int i = 0; i < ms * kRate / 1000; ++i)
      samples.push_back(level * std::cos(0.3f * static_cast<float>(samples.size())));
  };
  add(lead_ms, 0.001f), add(sound_ms, 0.5f), add(tail_ms, 0.001f);
  return samples;
}

int64_t ms(double count) { return std::llround(count * kRate / 1000); }

struct Whole {
  std::vector<float> samples;
  std::vector<SpokenWord> words;
  void take(JoinedPiece piece) {
    samples.insert(samples.end(), piece.samples.begin(), piece.samples.end());
    words.insert(words.end(), piece.words.begin(), piece.words.end());
  }
};

TEST(ChunkJoiner, OneChunkIsUnchanged) {
  const std::vector<float> samples = tone(300, 500, 400);
  Whole whole;
  ChunkJoiner joiner(kRate, 1, true);
  whole.take(joiner.add({.samples = samples, .words = {{"a", 0.3, 0.8}, {".", 0.8, 1.2}}, .phonemes = "a."}));
  EXPECT_EQ(whole.words.size(), 1u) << "the mark is heard in what is held";
  whole.take(joiner.end());
  EXPECT_EQ(whole.samples, samples);
  EXPECT_EQ(whole.words, (std::vector<SpokenWord>{{"a", 0.3, 0.8}, {".", 0.8, 1.2}}));
  EXPECT_EQ(joiner.samples(), std::ssize(samples));
}

TEST(ChunkJoiner, FindsSilence) {
  const SilentEdges edges = silent_edges(tone(300, 500, 400), kRate);
  EXPECT_EQ(edges.lead, ms(300));
  EXPECT_EQ(edges.tail, ms(400));
  EXPECT_EQ(silent_edges(std::vector<float>(1000), kRate).lead, 960);
  EXPECT_EQ(silent_edges({}, kRate).lead, 0);
  EXPECT_EQ(silent_edges(tone(0, 100, 0), kRate).tail, 0);
}

TEST(ChunkJoiner, SilenceAtAJoinDependsOnTheMarkAndTheSpeed) {
  const auto joined = [](const char* phonemes, double speed, bool trim = true) {
    Whole whole;
    ChunkJoiner joiner(kRate, speed, trim);
    whole.take(joiner.add({.samples = tone(300, 500, 900), .words = {}, .phonemes = phonemes}));
    whole.take(joiner.add({.samples = tone(300, 500, 900), .words = {}, .phonemes = phonemes}));
    whole.take(joiner.end());
    EXPECT_EQ(joiner.samples(), std::ssize(whole.samples));
    return std::ssize(whole.samples) - 2 * ms(500) - ms(300) - ms(900);  // the silence at the join
  };
  EXPECT_EQ(joined("a.", 1), ms(360 + 50));
  EXPECT_EQ(joined("a.”", 1), ms(360 + 50)) << "a closing quote is looked through";
  EXPECT_EQ(joined("a!", 1), ms(319 + 50));
  EXPECT_EQ(joined("a,", 1), ms(278 + 50));
  EXPECT_EQ(joined("a", 1), ms(50 + 50));
  EXPECT_EQ(joined("a.", 2), ms(180 + 50));
  EXPECT_EQ(joined("a.", 0.25), ms(900 + 50)) << "never longer than it was";
  EXPECT_EQ(joined("a.", 1, false), ms(900 + 300));
}

TEST(ChunkJoiner, JoinsDoNotClick) {
  Whole whole;
  ChunkJoiner joiner(kRate, 1, true);
  for (int i = 0; i < 3; ++i)
    whole.take(
        joiner.add({.samples = tone(0, 100, 0), .words = {}, .phonemes = "a", .pause_after_s = i * 0.1}));
  whole.take(joiner.end());
  ASSERT_EQ(std::ssize(whole.samples), 3 * ms(100) + ms(100) + ms(200));
  const float loudest_step = 0.5f * 0.3f;  // of the tone itself
  for (size_t i = 1; i < whole.samples.size(); ++i)
    ASSERT_LE(std::abs(whole.samples[i] - whole.samples[i - 1]), loudest_step) << i;
  EXPECT_LT(std::abs(whole.samples[static_cast<size_t>(ms(100))]), 0.01f);
  EXPECT_EQ(whole.samples.back(), 0);
}

TEST(ChunkJoiner, PausesHaveTheirLength) {
  Whole whole;
  ChunkJoiner joiner(kRate, 1, true);
  whole.take(joiner.add_pause(0.5));
  whole.take(joiner.add({.samples = tone(200, 100, 0), .words = {{"a", 0.2, 0.3}}, .phonemes = "a"}));
  whole.take(joiner.add_pause(0.25));
  whole.take(joiner.end());
  EXPECT_EQ(std::ssize(whole.samples), ms(500 + 50 + 100 + 250));
  ASSERT_EQ(whole.words.size(), 1u);
  EXPECT_NEAR(whole.words[0].start_s, 0.55, 1e-9);
  EXPECT_NEAR(whole.words[0].end_s, 0.65, 1e-9);
}

TEST(ChunkJoiner, WordsMoveWithTheirSound) {
  Whole whole;
  ChunkJoiner joiner(kRate, 1, true);
  const std::vector<SpokenWord> words = {{"a", 0.25, 0.55}, {"b", 0.55, 0.8}, {".", 0.8, 1.7}};
  for (int i = 0; i < 3; ++i)
    whole.take(joiner.add({.samples = tone(300, 500, 900), .words = words, .phonemes = "ab."}));
  whole.take(joiner.end());
  ASSERT_EQ(whole.words.size(), 9u);
  double last = 0;
  for (const SpokenWord& word : whole.words) {
    EXPECT_GE(word.start_s, last - 1e-9);
    EXPECT_GE(word.end_s, word.start_s);
    last = word.end_s;
  }
  EXPECT_NEAR(whole.words[4].start_s, 0.3 + 0.5 + 0.36 + 0.05 + 0.25, 1e-3) << "b, in the second chunk";
  EXPECT_NEAR(last, static_cast<double>(whole.samples.size()) / kRate, 1e-9);
}

TEST(ChunkJoiner, ChunksShorterThanAFadeAreJoined) {
  for (const int length : {0, 1, 5, 119, 120, 121}) {
    Whole whole;
    ChunkJoiner joiner(kRate, 1, true);
    for (int i = 0; i < 3; ++i)
      whole.take(joiner.add({.samples = std::vector<float>(static_cast<size_t>(length), 0.3f),
                             .words = {{"a", 0, 1}},
                             .phonemes = "a"}));
    whole.take(joiner.end());
    EXPECT_EQ(std::ssize(whole.samples), 3 * length);
  }
}

}  // namespace
}  // namespace shoal::runtime
