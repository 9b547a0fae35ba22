#include "runtime/voices/new_file.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <unistd.h>

#include "base/error.h"

namespace shoal::runtime {
namespace {

constexpr std::string_view kTemporaryStart = ".shoal-", kTemporaryEnd = ".tmp";

// An open file that is deleted unless keep() was called.
class Output {
 public:
  Output(const std::string& path, mode_t mode) : path_(path) {
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd_ < 0) fail_with_errno(path_, "cannot be created");
  }
  ~Output() {
    if (fd_ >= 0) close(fd_);
    if (!kept_) unlink(path_.c_str());
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail_with_errno(path_, "cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(done));
    }
  }
  void sync() {
    if (fsync(fd_) != 0 && errno != EINVAL && errno != ENOSYS) fail_with_errno(path_, "cannot be written");
  }
  void keep() {
    const int status = close(fd_);
    fd_ = -1;
    if (status != 0) fail_with_errno(path_, "cannot be written");
    kept_ = true;
  }

 private:
  const std::string& path_;
  int fd_ = -1;
  bool kept_ = false;
};

}  // namespace

std::string temporary_name() {
  // The process id distinguishes processes of one machine, the random number machines.
  static const uint32_t kProcess = std::random_device{}();
  static std::atomic<uint64_t> counter{0};
  return concat(kTemporaryStart, std::hex, getpid(), "-", kProcess, "-", counter.fetch_add(1), kTemporaryEnd);
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(kTemporaryStart) && name.ends_with(kTemporaryEnd);
}

void write_new_file(const std::string& path, std::span<const std::byte> bytes, NewFile kind) {
  Output output(path, kind == NewFile::cached ? 0444 : 0666);
  output.write_all(bytes);
  if (kind == NewFile::kept) output.sync();
  output.keep();
}

void sync_folder(const std::string& path) noexcept {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

void fail_with_errno(std::string_view path, std::string_view what) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  fail(full ? ErrorCode::resource_exhausted : ErrorCode::io, path, ": ", what, ": ", std::strerror(error));
}

}  // namespace shoal::runtime
