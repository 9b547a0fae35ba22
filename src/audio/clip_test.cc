#include "audio/clip.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "audio/encoder.h"
#include "audio/sounds_testing.h"

// libsndfile 1.2.0 forgets one structure (6 KB) when the headers of an Ogg Vorbis file are damaged.
extern "C" const char* __lsan_default_suppressions() { return "leak:vorbis_info_init"; }

namespace shoal::audio {
namespace {

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

ErrorCode code_of(const Bytes& file, const ClipLimits& limits = {}) {
  return error_of([&] { decode_clip(file, "reference", limits); }).code();
}

struct Container {
  const char* name;
  int format;
  double min_snr_db;  // of the coding: 6 dB per bit less headroom for integers, 35 for the 8-bit logarithms
};
const Container kContainers[] = {{"wav u8", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 30},
                                 {"wav 16", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 75},
                                 {"wav 24", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 110},
                                 {"wav 32", SF_FORMAT_WAV | SF_FORMAT_PCM_32, 130},
                                 {"wav float", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 200},
                                 {"wav double", SF_FORMAT_WAV | SF_FORMAT_DOUBLE, 200},
                                 {"wav ulaw", SF_FORMAT_WAV | SF_FORMAT_ULAW, 30},
                                 {"wav alaw", SF_FORMAT_WAV | SF_FORMAT_ALAW, 30},
                                 {"wavex 16", SF_FORMAT_WAVEX | SF_FORMAT_PCM_16, 75},
                                 {"rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16, 75},
                                 {"w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, 75},
                                 {"rifx", SF_FORMAT_WAV | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG, 75},
                                 {"aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 75},
                                 {"au", SF_FORMAT_AU | SF_FORMAT_PCM_16, 75},
                                 {"flac 16", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 75},
                                 {"flac 24", SF_FORMAT_FLAC | SF_FORMAT_PCM_24, 110},
                                 {"ogg vorbis", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 10}};

TEST(DecodeClip, ReadsEveryCommonContainer) {
  const auto voice = voice_like(24000, 0.5);
  for (const Container& container : kContainers) {
    SCOPED_TRACE(container.name);
    const Clip clip = decode_clip(sndfile_bytes(container.format, 24000, 1, voice), "reference");
    EXPECT_EQ(clip.sample_rate_hz, 24000);
    EXPECT_EQ(clip.samples.size(), voice.size());
    EXPECT_DOUBLE_EQ(clip.seconds(), 0.5);
    EXPECT_GT(snr_db(voice, clip.samples), container.min_snr_db);
  }
}

TEST(DecodeClip, AveragesChannels) {
  for (const int channels : {2, 6, 8}) {
    std::vector<float> interleaved;
    for (int frame = 0; frame < 5000; ++frame)  // more than one block
      for (int c = 0; c < channels; ++c)
        interleaved.push_back(static_cast<float>((frame % 100) * (c + 1)) / 1024.0f);  // sums are exact
    const Clip clip =
        decode_clip(sndfile_bytes(SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, channels, interleaved), "x");
    ASSERT_EQ(clip.samples.size(), 5000u);
    for (int frame = 0; frame < 5000; ++frame) {
      const float sum = static_cast<float>((frame % 100) * channels * (channels + 1) / 2) / 1024.0f;
      ASSERT_EQ(clip.samples[static_cast<size_t>(frame)], sum / static_cast<float>(channels)) << frame;
    }
  }
}

TEST(DecodeClip, RefusesFilesThatAreNotAudio) {
  const Error error = error_of([] { decode_clip(bytes_of("Dear diary,\nno sound today.\n"), "reference"); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt_file);
  EXPECT_EQ(error.message(), "reference: not a readable audio file (wav, flac, ogg, mp3, aiff)");
  EXPECT_EQ(code_of({}), ErrorCode::corrupt_file);
  for (const char* text : {"R", "RIFF", "RIFF\xff\xff\xff\xffWAVE", "fLaC", "OggS", "FORM", "ID3\x04", "caff",
                           ".snd", "RIFF1234WAVEfmt ", "PK\x03\x04",
                           "\x7f"
                           "ELF",
                           "MATLAB 5.0 MAT-file", "\xff\xfb"})
    EXPECT_EQ(code_of(bytes_of(text)), ErrorCode::corrupt_file) << text;
}

TEST(DecodeClip, NamesAacAsUnsupported) {
  EXPECT_EQ(code_of(bytes_of(std::string_view("\0\0\0\x20"
                                              "ftypM4A \0\0\0\0",
                                              16))),
            ErrorCode::unsupported);
  EXPECT_EQ(code_of(bytes_of("\xff\xf1\x50\x80\x01\x3f\xfc")), ErrorCode::unsupported);  // ADTS
}

TEST(DecodeClip, SkipsTheTagsOfMp3Files) {
  const auto voice = voice_like(44100, 0.3);
  const Bytes mp3 = encode(Format::mp3, {}, voice);
  for (const size_t length : {20u, 5000u, 400000u}) {  // the last is a cover picture
    Bytes tagged = bytes_of(std::string_view("ID3\x03\0\0", 6));
    for (const int shift : {21, 14, 7, 0}) tagged.push_back(static_cast<std::byte>((length >> shift) & 0x7F));
    tagged.resize(10 + length, std::byte{0});
    tagged.insert(tagged.end(), mp3.begin(), mp3.end());
    EXPECT_EQ(decode_clip(tagged, "x").samples.size(), voice.size()) << length;
  }
}

TEST(DecodeClip, EnforcesItsLimits) {
  const auto two_seconds = encode(Format::wav, {.sample_rate_hz = 16000}, voice_like(16000, 2));
  EXPECT_EQ(decode_clip(two_seconds, "x", {.max_seconds = 2}).samples.size(), 32000u);
  const Error error = error_of([&] { decode_clip(two_seconds, "reference", {.max_seconds = 1.5}); });
  EXPECT_EQ(error.code(), ErrorCode::too_large);
  EXPECT_EQ(error.message(), "reference: longer than the limit of 1.5 seconds");
  EXPECT_EQ(code_of(two_seconds, {.max_file_bytes = 64043}), ErrorCode::too_large);
  EXPECT_NO_THROW(decode_clip(two_seconds, "x", {.max_file_bytes = 64044}));
  EXPECT_EQ(code_of(two_seconds, {.min_sample_rate_hz = 22050}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(two_seconds, {.max_sample_rate_hz = 8000}), ErrorCode::invalid_argument);
  const auto three_channels =
      sndfile_bytes(SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 3, std::vector<float>(300));
  EXPECT_EQ(code_of(three_channels, {.max_channels = 2}), ErrorCode::invalid_argument);
}

TEST(DecodeClip, StopsAtTheLimitForHighlyCompressedSilence) {
  // Ten minutes of silence are a few kilobytes of FLAC: only the running count can stop it.
  const std::vector<float> silence(600 * 8000);
  const auto flac = encode(Format::flac, {.sample_rate_hz = 8000}, silence);
  EXPECT_LT(flac.size(), 200'000u);
  EXPECT_EQ(code_of(flac), ErrorCode::too_large);
  EXPECT_EQ(decode_clip(flac, "x", {.max_seconds = 600}).samples.size(), silence.size());
}

TEST(DecodeClip, RefusesNonFiniteAndHugeSamples) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -3e38f, 12000.0f}) {
    std::vector<float> samples(6000, 0.1f);
    samples[5000] = bad;
    EXPECT_EQ(code_of(sndfile_bytes(SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 1, samples)),
              ErrorCode::invalid_argument)
        << bad;
  }
}

TEST(DecodeClip, RefusesAFileWithoutSamples) {
  EXPECT_EQ(code_of(encode(Format::wav, {}, {})), ErrorCode::invalid_argument);
}

TEST(DecodeClip, TrustsTheDataNotTheHeader) {
  const auto voice = voice_like(16000, 0.2);
  Bytes wav = encode(Format::wav, {.sample_rate_hz = 16000}, voice);
  for (const uint8_t lie : {0xFF, 0x7F, 0xFE}) {  // RIFF and data sizes far beyond the file
    for (const size_t at : {4, 5, 6, 7, 40, 41, 42, 43}) wav[at] = std::byte{lie};
    EXPECT_EQ(decode_clip(wav, "x").samples.size(), voice.size()) << int{lie};
  }
}

TEST(DecodeClip,
     SurvivesDamagedFiles) {  // an Error or a clip within limits, never worse: run under sanitizers
  const auto voice = voice_like(16000, 0.4);
  std::vector<Bytes> files;
  for (const Format format : {Format::wav, Format::flac, Format::opus, Format::mp3})
    files.push_back(encode(format, {.sample_rate_hz = 16000}, voice));
  files.push_back(sndfile_bytes(SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000, 1, voice));
  files.push_back(sndfile_bytes(SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 16000, 1, voice));
  std::mt19937 random(11);
  int decoded = 0, refused = 0;
  for (const Bytes& file : files) {
    for (int trial = 0; trial < 150; ++trial) {
      Bytes damaged = file;
      // A third cut short, a third with flips in the header, a third with flips anywhere.
      if (trial % 3 == 0) damaged.resize(random() % file.size());
      const size_t reach = trial % 3 == 1 ? std::min<size_t>(128, file.size()) : file.size();
      for (int flip = 0; trial % 3 != 0 && flip < 1 + trial / 15; ++flip)
        damaged[random() % reach] ^= std::byte{static_cast<uint8_t>(1u << (random() % 8))};
      try {
        const Clip clip = decode_clip(damaged, "reference", {.max_seconds = 2});
        ASSERT_LE(clip.seconds(), 2.0);
        for (const float x : clip.samples) ASSERT_TRUE(std::abs(x) <= 16.0f);
        ++decoded;
      } catch (const Error& error) {
        ASSERT_TRUE(is_callers_fault(error.code())) << error.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(decoded, 50);
  EXPECT_GT(refused, 50);
}

TEST(ReadClip, ReadsAFileAndNamesAMissingOne) {
  const std::string path = ::testing::TempDir() + "clip_test.wav";
  const Bytes wav = encode(Format::wav, {.sample_rate_hz = 16000}, voice_like(16000, 0.1));
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(wav.data()), std::ssize(wav));
  EXPECT_EQ(read_clip(path).samples.size(), 1600u);
  std::filesystem::remove(path);
  const Error error = error_of([&] { read_clip(path); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(error.message().find(path), std::string::npos);
  EXPECT_EQ(error_of([] { read_clip("/tmp"); }).code(), ErrorCode::invalid_argument);
}

TEST(IsSilent, TheThresholdIsSixtyDecibelsBelowFullScale) {
  EXPECT_TRUE(is_silent({}));
  EXPECT_TRUE(is_silent(std::vector<float>{0.0f, 0.0009f, -0.0009f}));
  EXPECT_FALSE(is_silent(std::vector<float>{0.0f, -0.0011f}));
  EXPECT_FALSE(is_silent(voice_like(16000, 0.1)));
}

}  // namespace
}  // namespace shoal::audio
