#include "bench/load/reference_clip.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "base/base64.h"
#include "base/error.h"
#include "base/temporary_folder_testing.h"
#include "bench/load/kept_sound.h"
#include "bench/load/sounds_testing.h"

namespace shoal::load {
namespace {

std::string clip_file(size_t extra_bytes = 0) {
  WavHeader header;
  header.data_bytes = 2 * 24'000;
  std::string head = header.text();
  // A chunk before the samples moves them.
  head.insert(head.size() - 8, "LIST" + little_bytes(extra_bytes, 4) + std::string(extra_bytes, 'x'));
  return head + samples_of(24'000);
}

TEST(ReferenceClip, IsNewInItsLowestBitsAlone) {
  for (const size_t extra : {0, 2, 4}) {
    const std::string file = clip_file(extra);
    const ReferenceClip clip(file, "Words.", "clip.wav");
    EXPECT_EQ(clip.base64({}), to_base64(file));
    const std::string one = *from_base64(clip.base64(0x0123'4567'89ab'cdef));
    EXPECT_EQ(one, *from_base64(clip.base64(0x0123'4567'89ab'cdef)));
    EXPECT_NE(one, *from_base64(clip.base64(0x0123'4567'89ab'cdee)));
    ASSERT_EQ(one.size(), file.size());
    int changed = 0;
    for (size_t i = 0; i < file.size(); ++i) {
      const int difference =
          std::abs(static_cast<unsigned char>(one[i]) - static_cast<unsigned char>(file[i]));
      EXPECT_LE(difference, 1) << i;
      if (difference == 0) continue;
      ++changed;
      EXPECT_EQ((file.size() - i) % 2, 0u) << "the low byte of a sample";
    }
    EXPECT_EQ(changed, 32) << "8000 is even, and this number has 32 ones";
  }
}

TEST(ReferenceClip, IsAWavFileWithItsWordsBesideIt) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("a.wav"), std::ios::binary) << clip_file();
  EXPECT_THROW(read_reference_clip(folder.path("a.wav")), Error) << "no words";
  std::ofstream(folder.path("a.lab")) << "Some words.\n";
  EXPECT_EQ(read_reference_clip(folder.path("a.wav")).words(), "Some words.");
  EXPECT_THROW(ReferenceClip("OggS", "Words.", "a"), Error);
  EXPECT_THROW(ReferenceClip(WavHeader{.data_bytes = 100}.text() + samples_of(50), "Words.", "a"), Error);
  EXPECT_THROW(ReferenceClip(WavHeader{.bits = 8}.text() + samples_of(24'000), "Words.", "a"), Error);
}

TEST(KeptSound, IsAFileOfTheSamples) {
  RequestRecord record;
  record.index = 12;
  record.format = {.rate_hz = 44'100, .channels = 2, .bytes_per_sample = 4, .is_float = true};
  record.samples = samples_of(8) + "abc";  // two frames, and what is no whole one
  const std::string wav = wav_of(record);
  WavHeader header{.rate_hz = 44'100, .channels = 2, .bits = 32, .tag = 3, .data_bytes = 16};
  std::string expected = header.text() + samples_of(8);
  expected.replace(4, 4, little_bytes(16 + 36, 4));
  EXPECT_EQ(wav, expected);
  const TemporaryFolder folder;
  EXPECT_EQ(keep_sound(folder.path(""), 3, record), "audio/3-12.wav");
  std::ifstream file(folder.path("audio/3-12.wav"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), wav);
}

}  // namespace
}  // namespace shoal::load
