#include "audio/stream_resampler.h"

#include <gtest/gtest.h>

#include "audio/resample.h"
#include "audio/sounds_testing.h"

namespace shoal::audio {
namespace {

constexpr std::pair<int, int> kRates[] = {{16000, 24000}, {44100, 24000}, {16000, 8000},
                                          {44100, 48000}, {24000, 44100}, {44100, 8000},
                                          {24000, 8000},  {44100, 22050}, {24000, 16000}};

std::vector<float> in_pieces(int from_hz, int to_hz, std::span<const float> samples, size_t largest) {
  StreamResampler resampler(from_hz, to_hz);
  std::vector<float> out;
  std::mt19937 random(11);
  while (!samples.empty()) {
    const size_t count = std::min<size_t>(random() % (largest + 1), samples.size());
    resampler.push(samples.first(count), out);
    samples = samples.subspan(count);
  }
  resampler.finish(out);
  return out;
}

TEST(StreamResampler, TheResultDoesNotDependOnHowTheSamplesAreCut) {
  for (const auto& [from, to] : kRates) {
    const auto voice = voice_like(from, 0.8);
    const auto whole = in_pieces(from, to, voice, voice.size());
    for (const size_t largest : {5u, 800u, 20000u})
      EXPECT_TRUE(in_pieces(from, to, voice, largest) == whole) << from << " to " << to << ", " << largest;
  }
}

TEST(StreamResampler, SoundsTheSameAtTheSameTime) {
  for (const auto& [from, to] : kRates) {
    SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
    const auto voice = voice_like(from, 0.8);
    const auto got = in_pieces(from, to, voice, 700);
    EXPECT_NEAR(static_cast<double>(got.size()), static_cast<double>(voice.size()) * to / from, 1);
    // The codec's resampler is another filter with its own roll-off; a shift by a sample would cost far more.
    EXPECT_GT(snr_db(resample(voice, from, to), got), 30);
  }
}

TEST(StreamResampler, FirstSoundComesWithinTheStatedDelay) {
  const std::pair<std::pair<int, int>, double> bounds_ms[] = {
      {{16000, 24000}, 38}, {{44100, 24000}, 39.5}, {{44100, 48000}, 22}, {{16000, 8000}, 120}};
  for (const auto& [rates, bound_ms] : bounds_ms) {
    StreamResampler resampler(rates.first, rates.second);
    const auto voice = voice_like(rates.first, 0.5);
    std::vector<float> out;
    size_t pushed = 0;
    while (out.empty() && pushed < voice.size()) resampler.push(std::span(voice).subspan(pushed++, 1), out);
    EXPECT_LE(static_cast<double>(pushed) * 1e3 / rates.first, bound_ms)
        << rates.first << " " << rates.second;
  }
}

TEST(StreamResampler, EmptyInputGivesEmptyOutput) {
  StreamResampler resampler(16000, 24000);
  std::vector<float> out;
  resampler.finish(out);
  EXPECT_TRUE(out.empty());
}

TEST(StreamResampler, RefusesRatesByName) {
  for (const auto& [from, to] : {std::pair{0, 24000}, {24000, 0}, {-1, 8000}, {16000, 192001}, {3999, 8000}})
    EXPECT_EQ(error_of([&] { StreamResampler(from, to); }).code(), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace shoal::audio
