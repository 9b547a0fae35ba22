#include <cmath>
#include <gtest/gtest.h>
#include <numbers>
#include <numeric>

#include "base/error.h"
#include "bench/quality/logits.h"
#include "bench/quality/report.h"
#include "bench/quality/speech.h"

namespace shoal::quality {
namespace {

using Logits = std::vector<float>;
const float kLn3 = std::log(3.0f);

// p = (1/2, 1/2), q = (3/4, 1/4): 1/2 ln(2/3) + 1/2 ln 2; and the other way round 3/4 ln(3/2) + 1/4 ln(1/2).
TEST(KlDivergence, IsThatComputedByHand) {
  const Logits even{0, 0}, skewed{kLn3, 0};
  EXPECT_NEAR(kl_divergence(even, skewed), 0.14384104, 1e-7);
  EXPECT_NEAR(kl_divergence(skewed, even), 0.13081204, 1e-7);
  EXPECT_EQ(kl_divergence(skewed, skewed), 0);
  EXPECT_NEAR(kl_divergence(Logits{1000, 0}, Logits{0, 1000}), 1000, 1e-3);
  EXPECT_NEAR(kl_divergence(Logits{0, -INFINITY}, even), std::log(2.0), 1e-7);
  EXPECT_EQ(kl_divergence(even, Logits{0, -INFINITY}), INFINITY);
  for (const Logits& bad : {Logits{NAN, 0}, Logits{INFINITY, 0}, Logits{-INFINITY, -INFINITY}}) {
    EXPECT_THROW(kl_divergence(even, bad), Error);
    EXPECT_THROW(kl_divergence(bad, even), Error);
  }
}

TEST(HeadComparison, CountsByTextAndPosition) {
  const Logits even{0, 0}, skewed{kLn3, 0}, turned{0, kLn3};
  HeadComparison head;
  head.add(0, 0, even, even);
  head.add(0, 15, even, skewed);
  head.add(0, 16, skewed, turned);  // 3/4 ln 3 + 1/4 ln(1/3)
  head.add(1, 300, even, even);
  const auto figures = head.figures();
  EXPECT_NEAR(figures["mean_kl"], (0.14384104 + 0.54930614) / 4, 1e-7);
  EXPECT_NEAR(figures["worst_kl"], 0.54930614, 1e-7);
  EXPECT_EQ(figures["worst_frame"], 16);
  EXPECT_EQ(figures["agreement"], 0.75);
  EXPECT_EQ(figures["worst_agreement"], 2.0 / 3);
  ASSERT_EQ(figures["positions"].size(), 3u);  // none from frame 64 to 255
  EXPECT_EQ(figures["positions"][0]["rows"], 2);
  EXPECT_EQ(figures["positions"][1]["agreement"], 0);
  EXPECT_EQ(figures["positions"][2]["first_frame"], 256);
}

std::vector<Cepstrum> cepstra_of_chirp(int samples, double hz, double rising_hz) {
  std::vector<float> wave;
  for (int i = 0; i < samples; ++i) {
    const double t = 2 * std::numbers::pi * i / 16000.0;
    wave.push_back(
        static_cast<float>(0.3 * std::sin(hz * t) + 0.2 * std::sin(rising_hz * t * (1 + i / 16000.0))));
  }
  return mel_cepstra(wave, 16000);
}

// By a direct transcription of voice/evaluation/measures.py, with sums instead of a fast transform.
TEST(MelCepstrum, IsThatOfTheVoicesEvaluation) {
  const auto a = cepstra_of_chirp(2000, 220, 900), b = cepstra_of_chirp(1500, 330, 700);
  ASSERT_EQ(a.size(), 11u);
  ASSERT_EQ(b.size(), 8u);
  EXPECT_NEAR(a[0][0], 1.4991231892657124, 1e-5);
  EXPECT_NEAR(a[5][12], -0.34032998816592275, 1e-5);
  EXPECT_NEAR(b[7][3], -0.4657035797199331, 1e-5);
  EXPECT_NEAR(*mel_cepstral_distortion(a, b), 13.730520704630175, 1e-4);
  EXPECT_TRUE(mel_cepstra(std::vector<float>(384), 16000).empty());
  EXPECT_FALSE(mel_cepstral_distortion(a, {}).has_value());
}

TEST(MelCepstrum, DistortionDoesNotSeeThePace) {
  Cepstrum quiet{}, loud{};
  loud[0] = 1;
  const std::vector<Cepstrum> word{quiet, loud, quiet}, slow{quiet, quiet, loud, loud, loud, quiet};
  EXPECT_EQ(mel_cepstral_distortion(word, slow), 0.0);
  // 10 / ln 10 * sqrt 2 for each of the three steps.
  EXPECT_NEAR(*mel_cepstral_distortion(std::vector(3, quiet), std::vector(3, loud)), 6.14185, 1e-4);
}

std::vector<SpokenText> spoken(std::vector<int64_t> frames) {
  std::vector<SpokenText> texts;
  for (const int64_t count : frames) texts.push_back({.frames = count, .ended = count < 30});
  return texts;
}

TEST(Gates, HoldAtTheirLimitAndNotBeyond) {
  nlohmann::ordered_json evaluation{
      {"logits", {{"semantic", {{"mean_kl", 0.01}}}, {"fast", {{"mean_kl", 0.02}}}}},
      {"sampled", compare_speech(spoken({20, 20, 0}), spoken({30, 10, 0}))},
      {"greedy", nullptr}};
  EXPECT_EQ(evaluation["sampled"]["mean_length"], 1);
  EXPECT_EQ(evaluation["sampled"]["longest"], 1.5);
  EXPECT_EQ(evaluation["sampled"]["shortest"], 0.5);
  EXPECT_EQ(evaluation["sampled"]["ended"], 2.0 / 3);
  EXPECT_EQ(evaluation["sampled"]["p50_length"], 1);
  const auto missed = [&](std::optional<double> kl, std::optional<double> ratio) {
    return missed_gates(evaluation, {.max_kl = kl, .max_length_ratio = ratio}).size();
  };
  EXPECT_EQ(missed({}, {}), 0u);
  EXPECT_EQ(missed(0.02, 2.0), 0u);
  EXPECT_EQ(missed(0.015, 1.9), 2u);
  EXPECT_EQ(missed(0.005, {}), 2u);
  evaluation["logits"]["fast"]["mean_kl"] = NAN;
  EXPECT_EQ(missed(1.0, {}), 1u);
}

TEST(CompareSpeech, PercentilesAreOfTheNearestRank) {
  std::vector<int64_t> frames(200);
  std::iota(frames.begin(), frames.end(), 101);
  const nlohmann::ordered_json found = compare_speech(spoken(std::vector<int64_t>(200, 100)), spoken(frames));
  EXPECT_EQ(found["shortest"], 1.01);
  EXPECT_EQ(found["p01_length"], 1.02);
  EXPECT_EQ(found["p50_length"], 2.00);
  EXPECT_EQ(found["p99_length"], 2.98);
  EXPECT_EQ(found["longest"], 3.00);
}

}  // namespace
}  // namespace shoal::quality
