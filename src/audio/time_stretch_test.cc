#include "audio/time_stretch.h"

#include <gtest/gtest.h>
#include <limits>
#include <numbers>

#include "audio/sounds_testing.h"

namespace shoal::audio {
namespace {

constexpr double kSpeeds[] = {0.25, 0.5, 0.7, 0.99, 1.01, 1.5, 2, 3, 4};
constexpr int kStretchRates[] = {8000, 16000, 24000, 44100, 48000};
constexpr double kSlackS = 0.031;  // two periods of the lowest pitch that is looked for, 65 Hz

// The allowed difference of the length, in seconds.
double slack_s(double seconds, double speed) { return kSlackS + (speed < 0.5 ? 0.02 * seconds / speed : 0); }

std::vector<float> stretched(int rate_hz, double speed, std::span<const float> samples, size_t largest) {
  TimeStretch stretch(rate_hz, speed);
  std::vector<float> out;
  std::mt19937 random(11);
  while (!samples.empty()) {
    const size_t count = std::min<size_t>(random() % (largest + 1), samples.size());
    stretch.push(samples.first(count), out);
    samples = samples.subspan(count);
  }
  stretch.finish(out);
  return out;
}

std::vector<float> stretched(int rate_hz, double speed, std::span<const float> samples) {
  return stretched(rate_hz, speed, samples, samples.size());
}

// Harmonics of a pitch that stays.
std::vector<float> vowel(int rate_hz, double seconds, double pitch_hz) {
  std::vector<float> out(static_cast<size_t>(rate_hz * seconds));
  for (size_t i = 0; i < out.size(); ++i) {
    const double phase = 2 * std::numbers::pi * pitch_hz * static_cast<double>(i) / rate_hz;
    for (int h = 1; h <= 8; ++h) out[i] += static_cast<float>(0.2 * std::sin(h * phase) / h);
  }
  return out;
}

// How alike the middle of a sound and itself a period of this pitch later are: 1 is the same, by
// autocorrelation. Samples between samples are interpolated.
double likeness_at(std::span<const float> sound, int rate_hz, double pitch_hz) {
  const double lag = rate_hz / pitch_hz;
  const auto whole = static_cast<size_t>(lag);
  const double part = lag - static_cast<double>(whole);
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = sound.size() / 4; i < sound.size() * 3 / 4; ++i) {
    const double x = sound[i], y = sound[i + whole] * (1 - part) + sound[i + whole + 1] * part;
    xy += x * y, xx += x * x, yy += y * y;
  }
  return xy / std::sqrt(xx * yy);
}

// The pitch between 60 and 420 Hz with the highest autocorrelation; the shortest period of equally good ones.
double pitch_of(std::span<const float> sound, int rate_hz) {
  double best = 0, pitch = 0;
  for (double hz = 420; hz > 60; hz -= 0.5) {
    const double likeness = likeness_at(sound, rate_hz, hz);
    if (likeness > best + 0.01) best = likeness, pitch = hz;
  }
  return pitch;
}

TEST(TimeStretch, TheSpeedGivesTheLength) {
  for (const int rate : kStretchRates) {
    const auto voice = voice_like(rate, 3);
    for (const double speed : kSpeeds) {
      const double seconds = static_cast<double>(stretched(rate, speed, voice).size()) / rate;
      EXPECT_NEAR(seconds, 3 / speed, slack_s(3, speed)) << rate << " Hz, speed " << speed;
    }
  }
}

TEST(TimeStretch, KeepsThePitch) {
  for (const int rate : {16000, 44100})
    for (const double pitch : {90.0, 130.0, 210.0, 300.0}) {
      const auto before = vowel(rate, 2, pitch);
      ASSERT_NEAR(pitch_of(before, rate), pitch, pitch * 0.01);
      for (const double speed : kSpeeds) {
        const auto after = stretched(rate, speed, before);
        EXPECT_NEAR(pitch_of(after, rate), pitch, pitch * 0.02)
            << rate << " Hz, pitch " << pitch << ", speed " << speed;
        EXPECT_GT(likeness_at(after, rate, pitch), 0.95) << pitch << ", speed " << speed;
      }
    }
}

TEST(TimeStretch, KeepsTheLevel) {
  const auto power = [](std::span<const float> sound) {
    double sum = 0;
    for (const float sample : sound) sum += static_cast<double>(sample) * sample;
    return sum / static_cast<double>(sound.size());
  };
  const auto before = vowel(16000, 2, 130);
  for (const double speed : kSpeeds)
    EXPECT_NEAR(10 * std::log10(power(stretched(16000, speed, before)) / power(before)), 0, 0.5) << speed;
}

TEST(TimeStretch, TheResultDoesNotDependOnHowTheSamplesAreCut) {
  for (const int rate : {16000, 44100}) {
    const auto voice = voice_like(rate, 1.3);
    for (const double speed : kSpeeds) {
      const auto whole = stretched(rate, speed, voice);
      for (const size_t largest : {1u, 7u, 256u, 769u, 20000u})
        EXPECT_TRUE(stretched(rate, speed, voice, largest) == whole) << speed << ", " << largest;
    }
  }
}

TEST(TimeStretch, SpeedOneGivesTheSameSamples) {
  auto voice = voice_like(16000, 0.5);
  voice[10] = 3.5f, voice[11] = -1e-9f;  // neither clipped nor rounded
  for (const size_t largest : {1u, 300u, 20000u}) EXPECT_TRUE(stretched(16000, 1, voice, largest) == voice);
}

TEST(TimeStretch, SilenceStaysSilence) {
  for (const double speed : kSpeeds) {
    const auto out = stretched(16000, speed, std::vector<float>(16000));
    EXPECT_NEAR(static_cast<double>(out.size()), 16000 / speed, slack_s(1, speed) * 16000);
    EXPECT_EQ(std::ranges::count(out, 0.0f), std::ssize(out)) << speed;
  }
}

TEST(TimeStretch, ClipsBeyondFullScaleAndAcceptsAnyInput) {
  for (const double speed : {0.25, 0.6, 1.7, 4.0}) {
    auto loud = vowel(16000, 0.5, 130);
    for (float& sample : loud) sample *= 20;
    loud[100] = std::numeric_limits<float>::infinity();
    loud[200] = std::numeric_limits<float>::quiet_NaN();
    for (const float sample : stretched(16000, speed, loud)) {
      ASSERT_LE(std::abs(sample), 1) << speed;  // false of NaN, too
    }
    std::mt19937 random(3);
    std::uniform_real_distribution<float> any(-1, 1);
    std::vector<float> noise(20000);
    for (float& sample : noise) sample = any(random);
    EXPECT_NEAR(static_cast<double>(stretched(16000, speed, noise).size()), 20000 / speed,
                slack_s(1.25, speed) * 16000);
  }
}

TEST(TimeStretch, TheFirstSoundComesEarlyAndShortSoundsAreKept) {
  for (const double speed : kSpeeds) {
    TimeStretch stretch(44100, speed);
    const auto voice = voice_like(44100, 0.5);
    std::vector<float> out;
    size_t pushed = 0;
    while (out.empty() && pushed < voice.size()) stretch.push(std::span(voice).subspan(pushed++, 1), out);
    EXPECT_LE(static_cast<double>(pushed) / 44100, 0.037) << speed;  // 31 ms and a block
    for (const size_t count : {1u, 100u, 800u}) {
      const auto little = stretched(44100, speed, std::span(voice).first(count));
      EXPECT_NEAR(static_cast<double>(little.size()), static_cast<double>(count) / speed, kSlackS * 44100);
    }
    EXPECT_TRUE(stretched(44100, speed, {}).empty());
  }
}

TEST(TimeStretch, RefusesOtherSpeedsAndRates) {
  for (const double speed : {0.0, 0.24, 4.01, -1.0, std::nan(""), 1e300})
    EXPECT_THROW(TimeStretch(16000, speed), Error) << speed;
  for (const int rate : {0, 3999, 200000}) EXPECT_THROW(TimeStretch(rate, 1.5), Error) << rate;
}

}  // namespace
}  // namespace shoal::audio
