#include "bench/load/sound_reader.h"

#include <cstring>
#include <gtest/gtest.h>

#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

constexpr double kSilence = 0.01;

std::string kind_of(const std::optional<Failure>& failure) { return failure ? failure->kind : ""; }

SoundReader read(Container container, int stated_rate_hz, const std::string& bytes, size_t step = 1 << 20) {
  SoundReader reader(container, stated_rate_hz, kSilence);
  for (size_t at = 0; at < bytes.size(); at += step)
    EXPECT_EQ(kind_of(reader.take(std::string_view(bytes).substr(at, step))), "");
  return reader;
}

std::string failure_of(Container container, int stated_rate_hz, const std::string& bytes) {
  SoundReader reader(container, stated_rate_hz, kSilence);
  if (const auto failure = reader.take(bytes)) return failure->kind;
  return kind_of(reader.end());
}

TEST(SoundReader, FindsTheSameInPiecesOfAnySize) {
  const std::string bytes = WavHeader{.rate_hz = 16'000}.text() + samples_of(100, 0) + samples_of(50, -9000);
  const uint64_t sum = read(Container::wav, 0, bytes).checksum();
  for (const size_t step : {1, 2, 3, 7, 44, 45, 1000}) {
    const SoundReader reader = read(Container::wav, 0, bytes, step);
    EXPECT_EQ(reader.frames(), 150) << step;
    EXPECT_EQ(reader.format().rate_hz, 16'000);
    EXPECT_EQ(reader.first_audible_frame(), 100) << step;
    EXPECT_EQ(reader.checksum(), sum) << step;
    EXPECT_EQ(kind_of(reader.end()), "");
  }
}

TEST(SoundReader, HasAThresholdOfSilence) {
  const auto first = [](int16_t value) {
    return read(Container::pcm, 8'000, samples_of(4, value)).first_audible_frame();
  };
  EXPECT_EQ(first(327), -1);  // 0.01 * 32768 = 327.68
  EXPECT_EQ(first(328), 0);
  EXPECT_EQ(first(-32'768), 0);
}

TEST(SoundReader, ReadsOtherWidthsAndChannels) {
  const std::string stereo =
      WavHeader{.channels = 2, .bits = 24}.text() + std::string(6, '\0') + std::string("\0\0\0\0\0\x40", 6);
  SoundReader reader = read(Container::wav, 0, stereo);
  EXPECT_EQ(reader.frames(), 2);
  EXPECT_EQ(reader.first_audible_frame(), 1);
  const float values[] = {0, 0.5f, 0};
  std::string floats(sizeof values, '\0');
  std::memcpy(floats.data(), values, sizeof values);
  reader = read(Container::wav, 0, WavHeader{.bits = 32, .tag = 3}.text() + floats);
  EXPECT_EQ(reader.frames(), 3);
  EXPECT_EQ(reader.first_audible_frame(), 1);
}

TEST(SoundReader, ReadsFilesOneAfterTheOther) {
  const std::string file = WavHeader{.data_bytes = 20}.text() + samples_of(10);
  EXPECT_EQ(read(Container::wav, 0, file + file + file).frames(), 30);
  EXPECT_EQ(failure_of(Container::wav, 0, file + WavHeader{.rate_hz = 8'000}.text() + samples_of(10)),
            "rate_contradiction");
  for (const size_t step : {4, 1000})
    EXPECT_EQ(read(Container::wav, 0, file + "LIST" + file, step).frames(), 10)
        << "what follows a list is no sound";
}

TEST(SoundReader, SeesALyingRate) {
  EXPECT_EQ(failure_of(Container::wav, 48'000, WavHeader{.rate_hz = 24'000}.text()), "rate_contradiction");
  EXPECT_EQ(failure_of(Container::wav, 0, WavHeader{.rate_hz = 48'000, .bytes_per_s = 48'000}.text()),
            "rate_contradiction");
}

TEST(SoundReader, NeverAssumesARate) { EXPECT_EQ(failure_of(Container::pcm, 0, samples_of(10)), "no_rate"); }

TEST(SoundReader, AStreamedWavOfFishMayHaveNoHeader) {
  for (const size_t step : {1, 3, 1000}) {
    EXPECT_EQ(read(Container::bare_wav, 16'000, samples_of(9), step).frames(), 9);
    EXPECT_EQ(read(Container::bare_wav, 24'000, WavHeader().text() + samples_of(9), step).frames(), 9);
  }
  EXPECT_EQ(failure_of(Container::bare_wav, 0, samples_of(9)), "no_rate");
  SoundReader told(Container::bare_wav, 0, kSilence, 44'100);
  EXPECT_EQ(kind_of(told.take(samples_of(9))), "");
  EXPECT_EQ(told.format().rate_hz, 44'100);
}

TEST(SoundReader, TellsWhatIsNoSoundOrNotWhole) {
  EXPECT_EQ(failure_of(Container::wav, 0, "<!DOCTYPE html>"), "not_sound");
  EXPECT_EQ(failure_of(Container::wav, 0, "RIFF1234AVI LIST"), "not_sound");
  EXPECT_EQ(failure_of(Container::wav, 0, "RIFF1234WAVEdata1234"), "bad_sound");
  EXPECT_EQ(failure_of(Container::wav, 0, WavHeader{.bits = 8}.text()), "bad_sound");
  EXPECT_EQ(failure_of(Container::wav, 0, WavHeader{.data_bytes = 100}.text() + samples_of(49)), "cut_off");
  EXPECT_EQ(failure_of(Container::wav, 0, WavHeader().text()), "no_sound");
  EXPECT_EQ(failure_of(Container::wav, 0, WavHeader().text().substr(0, 30)), "cut_off");
  EXPECT_EQ(failure_of(Container::pcm, 8'000, samples_of(2) + "x"), "cut_off");
}

}  // namespace
}  // namespace shoal::load
