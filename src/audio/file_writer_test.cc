#include "audio/file_writer.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "audio/clip.h"
#include "audio/sounds_testing.h"

namespace shoal::audio {
namespace {

namespace fs = std::filesystem;

class AudioFileWriterTest : public ::testing::Test {
 protected:
  AudioFileWriterTest()
      : folder_(fs::path(::testing::TempDir()) / ("file_writer_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~AudioFileWriterTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  static Bytes content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  static ErrorCode code_of(const std::string& path, Format format = Format::wav,
                           EncoderOptions options = {}) {
    return error_of([&] { AudioFileWriter(path, format, options); }).code();
  }

  fs::path folder_;
  std::vector<float> voice_ = voice_like(44100, 0.3);
};

TEST_F(AudioFileWriterTest, CommittedFilesEqualEncodedOnes) {
  for (const Format format : {Format::wav, Format::pcm_s16le, Format::flac, Format::opus, Format::mp3}) {
    const std::string target = path("voice." + std::string(extension(format)));
    AudioFileWriter writer(target, format, {});
    writer.write(std::span(voice_).first(1000));
    writer.write(std::span(voice_).subspan(1000));
    EXPECT_FALSE(fs::exists(target));
    writer.commit();
    EXPECT_TRUE(content(target) == encode(format, {}, voice_)) << name_of(format);
  }
  EXPECT_EQ(files(), 5u);
  mode_t mask = umask(0);
  umask(mask);
  EXPECT_EQ(static_cast<mode_t>(fs::status(path("voice.wav")).permissions()), 0666 & ~mask);
}

TEST_F(AudioFileWriterTest, FilesForTelephonesHave8KHz) {
  for (const Format format : {Format::ulaw, Format::alaw}) {
    const std::string target = path("voice." + std::string(extension(format)));
    AudioFileWriter writer(target, format, {.sample_rate_hz = 44100});
    for (size_t at = 0; at < voice_.size(); at += 1000)
      writer.write(std::span(voice_).subspan(at, std::min<size_t>(1000, voice_.size() - at)));
    writer.commit();
    StreamResampler resampler(44100, 8000);
    std::vector<float> resampled;
    resampler.push(voice_, resampled);
    resampler.finish(resampled);
    EXPECT_TRUE(content(target) == encode(format, {.sample_rate_hz = 8000}, resampled)) << name_of(format);
  }
}

TEST_F(AudioFileWriterTest, WithoutCommitTheOldFileIsKept) {
  std::ofstream(path("a.wav")) << "old";
  {
    AudioFileWriter writer(path("a.wav"), Format::wav, {});
    AudioFileWriter other(path("b.wav"), Format::flac, {});
    writer.write(voice_);
    other.write(voice_);
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(content(path("a.wav")).size(), 3u);
  AudioFileWriter writer(path("a.wav"), Format::wav, {});
  writer.write(voice_);
  writer.commit();
  EXPECT_EQ(read_clip(path("a.wav")).samples.size(), voice_.size());
  EXPECT_EQ(files(), 1u);
}

TEST_F(AudioFileWriterTest, StreamModeWritesAtOnceAndRemovesUnfinishedFiles) {
  {
    AudioFileWriter writer(path("a.pcm"), Format::pcm_s16le, {}, AudioFileWriter::Mode::stream);
    writer.write(std::span(voice_).first(1000));
    EXPECT_EQ(fs::file_size(path("a.pcm")), 2000u);
  }
  EXPECT_EQ(files(), 0u);
  AudioFileWriter writer(path("a.wav"), Format::wav, {}, AudioFileWriter::Mode::stream);
  writer.write(voice_);
  writer.commit();
  EXPECT_EQ(fs::file_size(path("a.wav")), 44 + 2 * voice_.size());
}

TEST_F(AudioFileWriterTest, StreamModeNeverRemovesAnExistingFile) {
  std::ofstream(path("a.pcm")) << "older";
  {
    AudioFileWriter(path("a.pcm"), Format::pcm_s16le, {}, AudioFileWriter::Mode::stream);
  }
  EXPECT_EQ(content(path("a.pcm")).size(), 5u) << "nothing was written, yet its content is gone";
  {
    AudioFileWriter writer(path("a.pcm"), Format::pcm_s16le, {}, AudioFileWriter::Mode::stream);
    EXPECT_EQ(writer.unfinished_path(), "");
    writer.write(std::span(voice_).first(1));
  }
  EXPECT_EQ(content(path("a.pcm")).size(), 2u);
  AudioFileWriter(path("a.pcm"), Format::pcm_s16le, {}, AudioFileWriter::Mode::stream).commit();
  EXPECT_EQ(content(path("a.pcm")).size(), 0u);
}

TEST_F(AudioFileWriterTest, ReportsTheTemporaryFileOfAKilledProcess) {
  AudioFileWriter replaced(path("a.wav"), Format::wav, {});
  EXPECT_TRUE(fs::exists(replaced.unfinished_path()));
  EXPECT_NE(replaced.unfinished_path(), path("a.wav"));
  AudioFileWriter streamed(path("b.wav"), Format::wav, {}, AudioFileWriter::Mode::stream);
  EXPECT_EQ(streamed.unfinished_path(), path("b.wav"));
  replaced.commit();
  EXPECT_EQ(replaced.unfinished_path(), "");
}

TEST_F(AudioFileWriterTest, BadOptionsLeaveTheTargetAlone) {
  std::ofstream(path("a.mp3")) << "old";
  for (const auto mode : {AudioFileWriter::Mode::replace, AudioFileWriter::Mode::stream}) {
    EXPECT_THROW(AudioFileWriter(path("a.mp3"), Format::mp3, {.sample_rate_hz = 44101}, mode), Error);
  }
  EXPECT_EQ(fs::file_size(path("a.mp3")), 3u);
}

TEST_F(AudioFileWriterTest, WritesThroughALinkToAFile) {
  std::ofstream(path("real.wav")) << "old";
  fs::create_symlink("real.wav", path("link.wav"));
  AudioFileWriter writer(path("link.wav"), Format::wav, {});
  writer.write(voice_);
  writer.commit();
  EXPECT_TRUE(fs::is_symlink(path("link.wav")));
  EXPECT_EQ(read_clip(path("real.wav")).samples.size(), voice_.size());
}

TEST_F(AudioFileWriterTest, BadTargetsFailBeforeAnythingIsWritten) {
  EXPECT_EQ(code_of(""), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(folder_.string()), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(path("new/")), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(path("no/such/folder.wav")), ErrorCode::not_found);
  EXPECT_EQ(code_of(path(std::string(300, 'x'))), ErrorCode::io);  // a name longer than names can be
  EXPECT_EQ(code_of(path("a.mp3"), Format::mp3, {.sample_rate_hz = 44101}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of("/proc/shoal.wav"), ErrorCode::not_found);
  std::ofstream(path("file")) << "x";
  EXPECT_EQ(code_of(path("file/a.wav")), ErrorCode::not_found);
  EXPECT_EQ(files(), 1u);
  const std::string longest = path(std::string(255, 'x'));
  AudioFileWriter writer(longest, Format::wav, {});
  writer.commit();
  EXPECT_TRUE(fs::exists(longest));
}

TEST_F(AudioFileWriterTest, RefusesWriteProtectedTargets) {
  if (geteuid() == 0) GTEST_SKIP() << "nothing is write-protected for root";
  std::ofstream(path("a.wav")) << "old";
  chmod(path("a.wav").c_str(), 0444);
  EXPECT_EQ(code_of(path("a.wav")), ErrorCode::io);
  chmod(folder_.c_str(), 0555);
  EXPECT_EQ(code_of(path("b.wav")), ErrorCode::io);
  chmod(folder_.c_str(), 0755);
}

TEST_F(AudioFileWriterTest, StreamsIntoDevicesAndPipes) {
  {
    AudioFileWriter writer("/dev/null", Format::wav, {});
    writer.write(voice_);
    writer.commit();
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
  }
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  Bytes received;
  std::thread reader([&] { received = content(path("pipe")); });
  {
    AudioFileWriter writer(path("pipe"), Format::flac, {});
    writer.write(voice_);
    writer.commit();
  }
  reader.join();
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  EXPECT_EQ(decode_clip(received, "pipe").samples.size(), voice_.size());
}

TEST_F(AudioFileWriterTest, AFullDiskIsResourceExhausted) {
  AudioFileWriter writer("/dev/full", Format::pcm_s16le, {});
  EXPECT_EQ(error_of([&] { writer.write(voice_); }).code(), ErrorCode::resource_exhausted);
}

}  // namespace
}  // namespace shoal::audio
