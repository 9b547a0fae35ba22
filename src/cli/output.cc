#include "cli/output.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "audio/file_writer.h"
#include "base/error.h"
#include "base/file.h"

namespace shoal::cli {
namespace {

// Replaces the file when everything is written.
class FileOutput : public SpeechOutput {
 public:
  FileOutput(const std::string& path, audio::Format format, int sample_rate_hz)
      : writer_(path, format, {.sample_rate_hz = sample_rate_hz}) {}
  void write(std::span<const float> mono) override { writer_.write(mono); }
  void commit() override { writer_.commit(); }

 private:
  audio::AudioFileWriter writer_;
};

// Writes each piece at once. A regular file that was not committed is removed.
class StreamOutput : public SpeechOutput {
 public:
  StreamOutput(const std::string& path, audio::Format format, int sample_rate_hz) : path_(path) {
    if (path != "-") {
      fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      if (fd_ < 0)
        fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io, path,
             ": cannot be written: ", std::strerror(errno));
    }
    encoder_ = audio::make_encoder(format, {.sample_rate_hz = sample_rate_hz},
                                   [this](std::span<const std::byte> bytes) { put(bytes); });
  }
  ~StreamOutput() override {
    if (fd_ == STDOUT_FILENO) return;
    close(fd_);
    if (!committed_ && is_regular_file(path_)) unlink(path_.c_str());
  }
  StreamOutput(const StreamOutput&) = delete;
  StreamOutput& operator=(const StreamOutput&) = delete;

  void write(std::span<const float> mono) override { encoder_->write(mono); }
  void commit() override {
    encoder_->finish();
    committed_ = true;
  }

 private:
  void put(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        fail(ErrorCode::io, path_ == "-" ? "standard output" : path_,
             ": cannot be written: ", std::strerror(errno));
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }

  std::string path_;
  int fd_ = STDOUT_FILENO;
  std::unique_ptr<audio::Encoder> encoder_;
  bool committed_ = false;
};

}  // namespace

audio::Format output_format(const OutputOptions& options) {
  std::string name = options.format;
  if (name.empty()) {
    const std::string_view file = file_name(options.path);
    const size_t dot = file.rfind('.');
    name = dot == std::string_view::npos ? "wav" : std::string(file.substr(dot + 1));
    if (name == "ogg") name = "opus";
  }
  if (const auto format = audio::parse_format(name)) return *format;
  fail(ErrorCode::invalid_argument, "format: expected wav, pcm, flac, opus or mp3, got \"", name, "\"");
}

std::unique_ptr<SpeechOutput> open_output(const OutputOptions& options) {
  const audio::Format format = output_format(options);
  if (options.stream || options.path == "-")
    return std::make_unique<StreamOutput>(options.path, format, options.sample_rate_hz);
  return std::make_unique<FileOutput>(options.path, format, options.sample_rate_hz);
}

}  // namespace shoal::cli
