#include "audio/file_writer.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace shoal::audio {
namespace {

[[noreturn]] void fail_with_errno(const std::string& path, std::string_view what) {
  const int error = errno;
  const bool missing = error == ENOENT || error == ENOTDIR;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  fail(missing ? ErrorCode::not_found
       : full  ? ErrorCode::resource_exhausted
               : ErrorCode::io,
       path, ": ", what, ": ", std::strerror(error));
}

// The target of symbolic links, so that a link to a file stays a link.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

// A fresh name in the folder of `path`; short, because the target's own name may be as long as names can be.
std::string temporary_beside(const std::string& path) {
  static std::atomic<uint64_t> counter{0};
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return concat(folder, ".shoal-", getpid(), "-", counter.fetch_add(1), ".tmp");
}

}  // namespace

// The descriptor, and the temporary name while there is one.
class AudioFileWriter::Output {
 public:
  Output(const std::string& path, Mode mode) : path_(path) {
    if (mode == Mode::stream && path == "-") {
      use_standard_output();
      return;
    }
    if (path.empty()) fail(ErrorCode::invalid_argument, "output file: expected a path, got an empty one");
    struct stat status{};
    const bool exists = stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) fail_with_errno(path, "cannot be written");
    if ((exists && S_ISDIR(status.st_mode)) || path.back() == '/')
      fail(ErrorCode::invalid_argument, path, ": expected a file to write, got a folder");
    const bool regular = !exists || S_ISREG(status.st_mode);
    if (regular && mode == Mode::replace) {
      create_temporary(exists);
      return;
    }
    fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC | (regular ? O_CREAT : 0), 0666);
    if (fd_ < 0) fail_with_errno(path, "cannot be written");
    if (!exists) unfinished_ = resolved(path);
    holds_older_ = exists && regular;
  }

  ~Output() {
    if (fd_ >= 0) close(fd_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
    if (!unfinished_.empty()) unlink(unfinished_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool is_file() const { return !temporary_.empty(); }
  const std::string& unfinished_path() const { return is_file() ? temporary_ : unfinished_; }

  void append(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    drop_older_content();
    write_all(bytes, [this](const std::byte* from, size_t count) { return ::write(fd_, from, count); });
  }

  void overwrite_beginning(std::span<const std::byte> bytes) {
    off_t position = 0;
    write_all(bytes, [&](const std::byte* from, size_t count) {
      const ssize_t done = pwrite(fd_, from, count, position);
      if (done > 0) position += done;
      return done;
    });
  }

  // Closes the file and gives it its name.
  void commit() {
    drop_older_content();
    const int status = close(fd_);
    fd_ = -1;
    if (status != 0) fail_with_errno(path_, "cannot be written");
    unfinished_.clear();
    if (temporary_.empty()) return;
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
      fail_with_errno(path_, "cannot be renamed into place");
    temporary_.clear();
  }

 private:
  void use_standard_output() {
    path_ = "standard output";
    fd_ = dup(STDOUT_FILENO);
    if (fd_ < 0) fail_with_errno(path_, "cannot be written");
  }

  void create_temporary(bool target_exists) {
    // Renaming over a write-protected file would succeed; its owner did not mean that.
    if (target_exists && access(path_.c_str(), W_OK) != 0) fail_with_errno(path_, "cannot be written");
    target_ = target_exists ? resolved(path_) : path_;
    do {  // a left-over of a killed process may hold the name
      temporary_ = temporary_beside(target_);
      fd_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ >= 0) return;
    temporary_.clear();
    fail_with_errno(path_, "cannot be written");
  }

  void drop_older_content() {
    if (!holds_older_) return;
    if (ftruncate(fd_, 0) != 0) fail_with_errno(path_, "cannot be written");
    holds_older_ = false;
  }

  // `write_some` is write(2) or pwrite(2).
  template <typename WriteSome>
  void write_all(std::span<const std::byte> bytes, WriteSome write_some) {
    while (!bytes.empty()) {
      const ssize_t done = write_some(bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail_with_errno(path_, "cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
  }

  std::string path_;        // as given, for messages
  std::string target_;      // what to rename to
  std::string temporary_;   // empty: written directly, or already renamed
  std::string unfinished_;  // a new file written directly: removed unless committed
  bool holds_older_ = false;
  int fd_ = -1;
};

AudioFileWriter::AudioFileWriter(const std::string& path, Format format, EncoderOptions options, Mode mode) {
  const int from_hz = std::exchange(options.sample_rate_hz, usual_rate_hz(format, options.sample_rate_hz));
  if (options.sample_rate_hz != from_hz) resampler_.emplace(from_hz, options.sample_rate_hz);
  make_encoder(format, options, {});  // bad options are refused before the target is touched
  output_ = std::make_unique<Output>(path, mode);
  options.rewritable_header = output_->is_file();
  encoder_ = make_encoder(
      format, options, [output = output_.get()](std::span<const std::byte> bytes) { output->append(bytes); });
}

AudioFileWriter::~AudioFileWriter() = default;

const std::string& AudioFileWriter::unfinished_path() const { return output_->unfinished_path(); }

void AudioFileWriter::write(std::span<const float> mono) {
  if (!resampler_) return encoder_->write(mono);
  resampled_.clear();
  resampler_->push(mono, resampled_);
  encoder_->write(resampled_);
}

void AudioFileWriter::commit() {
  if (resampler_) {
    resampled_.clear();
    resampler_->finish(resampled_);
    encoder_->write(resampled_);
  }
  encoder_->finish();
  if (output_->is_file()) output_->overwrite_beginning(encoder_->final_header());
  output_->commit();
}

}  // namespace shoal::audio
