#include <cmath>
#include <gmock/gmock.h>
#include <limits>

#include "audio/encoder.h"
#include "capi/capi_testing.h"

namespace shoal::capi {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::vector<float> tone(size_t count) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i) samples[i] = 0.5f * std::sin(static_cast<float>(i) * 0.06f);
  return samples;
}

TEST(CSound, FilesAreThoseOfTheProgram) {
  const std::vector<float> samples = tone(9000);
  for (const char* format : {"wav", "pcm", "flac", "opus", "mp3", "aac"}) {
    const std::vector<std::byte> expected =
        audio::encode(audio::parse_format(format).value(), {.sample_rate_hz = 16000}, samples);
    const Buffer file = made<Buffer>(shoal_encode_sound, format, 16000, 0, samples.data(), samples.size());
    EXPECT_EQ(values_of<std::byte>(file), expected) << format;
  }
}

TEST(CSound, AStreamIsCompleteWhenItIsFinished) {
  const std::vector<float> samples = tone(9000);
  for (const char* format : {"wav", "pcm", "flac", "opus", "mp3", "aac"}) {
    std::vector<std::byte> expected;
    const auto whole = audio::make_encoder(audio::parse_format(format).value(), {.sample_rate_hz = 16000},
                                           [&](std::span<const std::byte> bytes) {
                                             expected.insert(expected.end(), bytes.begin(), bytes.end());
                                           });
    whole->write(samples);
    whole->finish();

    const CEncoder encoder = made<CEncoder>(shoal_encoder_new, format, 16000, 0);
    std::vector<std::byte> streamed;
    const auto append = [&](const Buffer& bytes) {
      const auto more = values_of<std::byte>(bytes);
      streamed.insert(streamed.end(), more.begin(), more.end());
    };
    for (size_t at = 0; at < samples.size(); at += 1500)
      append(made<Buffer>(shoal_encoder_write, encoder.get(), samples.data() + at, size_t{1500}));
    append(made<Buffer>(shoal_encoder_finish, encoder.get()));
    EXPECT_EQ(streamed, expected) << format;
    shoal_buffer* bytes = nullptr;
    EXPECT_EQ(shoal_encoder_write(encoder.get(), samples.data(), 1, &bytes, nullptr), SHOAL_INVALID_ARGUMENT);
    EXPECT_EQ(shoal_encoder_finish(encoder.get(), &bytes, nullptr), SHOAL_INVALID_ARGUMENT);
  }
}

TEST(CSound, SixteenBitsAreRoundedAsInFiles) {
  const std::vector<float> samples = {
      0, 1, -1, 2, 0.5f, 1.5f / 32767, std::numeric_limits<float>::quiet_NaN()};
  std::vector<int16_t> pcm(samples.size(), 99);
  EXPECT_EQ(shoal_to_pcm16(samples.data(), samples.size(), pcm.data(), nullptr), SHOAL_OK);
  const Buffer file = made<Buffer>(shoal_encode_sound, "pcm", 16000, 0, samples.data(), samples.size());
  EXPECT_EQ(values_of<int16_t>(file), pcm);
  EXPECT_EQ(pcm[1], 32767);
  EXPECT_EQ(shoal_to_pcm16(nullptr, 0, nullptr, nullptr), SHOAL_OK);
  EXPECT_EQ(shoal_to_pcm16(nullptr, 1, pcm.data(), nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_to_pcm16(samples.data(), 1, nullptr, nullptr), SHOAL_INVALID_ARGUMENT);
}

TEST(CSound, ClipsAreReadAsSamples) {
  const std::vector<float> samples = tone(3000);
  const Buffer file = made<Buffer>(shoal_encode_sound, "flac", 22050, 0, samples.data(), samples.size());
  shoal_buffer* read = nullptr;
  int32_t hz = 0;
  ASSERT_EQ(
      shoal_decode_sound(shoal_buffer_data(file.get()), shoal_buffer_size(file.get()), &read, &hz, nullptr),
      SHOAL_OK);
  const std::vector<float> back = values_of<float>(Buffer(read));
  EXPECT_EQ(hz, 22050);
  ASSERT_EQ(back.size(), samples.size());
  for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], samples[i], 1e-4) << i;
}

TEST(CSound, RefusesUnknownFormatsAndRates) {
  shoal_buffer* bytes = nullptr;
  shoal_error error = SHOAL_ERROR_INIT;
  const float sample = 0;
  EXPECT_EQ(shoal_encode_sound("midi", 16000, 0, &sample, 1, &bytes, &error), SHOAL_INVALID_ARGUMENT);
  EXPECT_THAT(error.message,
              HasSubstr("format: expected wav, pcm, flac, opus, mp3, aac, ulaw or alaw, got \"midi\""));
  EXPECT_EQ(shoal_encode_sound("wav", 1, 0, &sample, 1, &bytes, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_encode_sound(nullptr, 16000, 0, &sample, 1, &bytes, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(shoal_encode_sound("wav", 16000, 0, nullptr, 1, &bytes, nullptr), SHOAL_INVALID_ARGUMENT);
  shoal_encoder* encoder = nullptr;
  EXPECT_EQ(shoal_encoder_new("mp3", 16001, 0, &encoder, nullptr), SHOAL_INVALID_ARGUMENT);
  EXPECT_EQ(encoder, nullptr);
  EXPECT_EQ(shoal_decode_sound("noise", 5, &bytes, nullptr, nullptr), SHOAL_CORRUPT_FILE);
  EXPECT_EQ(shoal_decode_sound(nullptr, 5, &bytes, nullptr, nullptr), SHOAL_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shoal::capi
