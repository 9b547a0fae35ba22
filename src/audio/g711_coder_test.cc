#include <cstdlib>
#include <gtest/gtest.h>
#include <vector>

#include "audio/encoder.h"
#include "audio/sounds_testing.h"

namespace shoal::audio {
namespace {

// The values of the codes, by the tables of ITU-T G.711 (1988), scaled to 16 bits.
int ulaw_value(uint8_t code) {
  const int bits = ~code & 0xFF;
  const int magnitude = (((bits & 0x0F) * 8 + 132) << (bits >> 4 & 7)) - 132;
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}
int alaw_value(uint8_t code) {
  const int bits = code ^ 0x55, segment = bits >> 4 & 7, step = (bits & 0x0F) * 16 + 8;
  const int magnitude = segment == 0 ? step : (step + 256) << (segment - 1);
  return (bits & 0x80) != 0 ? magnitude : -magnitude;
}

// The codes by the decision values of the same tables: powers of two above a bias, each cut into 16 steps.
int segment_of(int magnitude, int first_bits) {
  int segment = 0;
  while (magnitude >> (first_bits + segment) > 1) ++segment;
  return segment;
}
uint8_t ulaw_code(int sample) {
  const int magnitude = std::min(std::abs(sample) / 4, 8158) + 33;  // 14 bits
  const int segment = segment_of(magnitude, 5);
  return static_cast<uint8_t>(
      ~((sample < 0 ? 0x80 : 0) | segment << 4 | (magnitude >> (segment + 1) & 0x0F)));
}
uint8_t alaw_code(int sample) {
  const int magnitude = std::min(std::abs(sample) / 16, 2047);  // 13 bits, of which the last decides nothing
  const int segment = segment_of(magnitude, 3);
  const int shift = std::max(segment - 1, 0);
  return static_cast<uint8_t>(((sample < 0 ? 0 : 0x80) | segment << 4 | (magnitude >> shift & 0x0F)) ^ 0x55);
}

struct Law {
  Format format;
  uint8_t (*code)(int sample);
  int (*value)(uint8_t code);
  int loudest;
};
constexpr Law kLaws[] = {{Format::ulaw, ulaw_code, ulaw_value, 32124},
                         {Format::alaw, alaw_code, alaw_value, 32256}};
constexpr EncoderOptions kTelephone{.sample_rate_hz = 8000};

TEST(G711, EverySampleGetsTheCodeOfTheRecommendation) {
  std::vector<float> all;
  for (int x = -32767; x <= 32767; ++x) all.push_back(static_cast<float>(x) / 32767.0f);
  for (const Law& law : kLaws) {
    const Bytes codes = encode(law.format, kTelephone, all);
    ASSERT_EQ(codes.size(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const int sample = audio::to_s16(all[i]);
      const uint8_t got = std::to_integer<uint8_t>(codes[i]);
      ASSERT_TRUE(sample == 0 || got == law.code(sample)) << name_of(law.format) << " of " << sample;
      // A step is at most a sixteenth of the loudest value below it.
      ASSERT_LE(std::abs(law.value(got) - sample), std::abs(sample) / 32 + 644);
    }
  }
}

TEST(G711, FullScaleIsTheLoudestCodeAndSilenceTheQuietest) {
  for (const Law& law : kLaws) {
    const Bytes codes = encode(law.format, kTelephone, std::vector<float>{2, -2, 0});
    const auto value = [&](size_t i) { return law.value(std::to_integer<uint8_t>(codes[i])); };
    EXPECT_EQ(value(0), law.loudest);
    EXPECT_EQ(value(1), -law.loudest);
    EXPECT_LE(std::abs(value(2)), 8);
  }
}

TEST(G711, BytesDoNotDependOnHowTheSamplesAreCut) {
  const std::vector<float> voice = voice_like(8000, 1.5);
  std::mt19937 random(3);
  for (const Law& law : kLaws) {
    const Bytes whole = encode(law.format, kTelephone, voice);
    Bytes pieces;
    const auto encoder = make_encoder(law.format, kTelephone, [&](std::span<const std::byte> piece) {
      pieces.insert(pieces.end(), piece.begin(), piece.end());
    });
    for (size_t at = 0; at < voice.size();) {
      const size_t count = std::min<size_t>(random() % 700, voice.size() - at);
      encoder->write(std::span(voice).subspan(at, count));
      EXPECT_EQ(pieces.size(), at += count) << "each sample leaves at once";
    }
    encoder->finish();
    EXPECT_TRUE(pieces == whole) << name_of(law.format);
    EXPECT_TRUE(encoder->final_header().empty());
    EXPECT_TRUE(encode(law.format, kTelephone, {}).empty());
  }
}

TEST(G711, ExceptionsOfTheSinkReachTheCaller) {
  const auto encoder = make_encoder(Format::ulaw, kTelephone,
                                    [](std::span<const std::byte>) { throw std::runtime_error("gone"); });
  EXPECT_THROW(encoder->write(std::vector<float>(100)), std::runtime_error);
}

TEST(G711, OnlyTheRateOfTelephonesIsTaken) {
  for (const Law& law : kLaws) {
    EXPECT_EQ(usual_rate_hz(law.format, 44100), 8000);
    const Error error = error_of([&] { make_encoder(law.format, {.sample_rate_hz = 16000}, {}); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(std::string(error.message()),
              std::string(name_of(law.format)) + " sample rate: expected 8000 Hz, got 16000");
  }
  EXPECT_EQ(usual_rate_hz(Format::wav, 44100), 44100);
}

}  // namespace
}  // namespace shoal::audio
