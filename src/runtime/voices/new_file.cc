#include "runtime/voices/new_file.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace shoal::runtime {
namespace {

constexpr std::string_view kTemporaryStart = ".shoal-", kTemporaryEnd = ".tmp";

bool is_disk_full(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

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

NewFolder::NewFolder(const std::string& parent) : path_(parent + "/" + temporary_name()) {
  if (mkdir(path_.c_str(), 0777) != 0) {
    const std::string path = std::exchange(path_, "");
    fail_with_errno(path, "cannot be created");
  }
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Output::Output(std::string path, NewFile kind) : path_(std::move(path)), kind_(kind) {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kind == NewFile::cached ? 0444 : 0666);
  if (fd_ < 0) fail_with_errno(path_, "cannot be created");
}

Output::~Output() {
  if (fd_ >= 0) close(fd_);
  if (!kept_) unlink(path_.c_str());
}

void Output::reserve(int64_t bytes) {
  // File systems that cannot reserve tell of a full disk later.
  if (bytes > 0 && fallocate(fd_, 0, 0, bytes) != 0 && is_disk_full(errno))
    fail_with_errno(path_, "cannot be written");
}

void Output::write(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_with_errno(path_, "cannot be written");
    bytes = bytes.subspan(static_cast<size_t>(done));
    offset += done;
  }
}

void Output::keep() {
  if (kind_ == NewFile::kept && fsync(fd_) != 0 && errno != EINVAL && errno != ENOSYS)
    fail_with_errno(path_, "cannot be written");
  const int status = close(std::exchange(fd_, -1));
  if (status != 0) fail_with_errno(path_, "cannot be written");
  kept_ = true;
}

void write_new_file(const std::string& path, std::span<const std::byte> bytes, NewFile kind) {
  Output output(path, kind);
  output.write(0, bytes);
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
  fail(is_disk_full(error) ? ErrorCode::resource_exhausted : ErrorCode::io, path, ": ", what, ": ",
       std::strerror(error));
}

}  // namespace shoal::runtime
