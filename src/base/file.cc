#include "base/file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace shoal {
namespace {

[[noreturn]] void fail_as_not_regular(const std::string& path) {
  fail(ErrorCode::invalid_argument, path, ": expected a regular file");
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) {
    // A FIFO would wait for a writer, a device might do something.
    constexpr int kHarmless = O_RDONLY | O_CLOEXEC | O_NOCTTY;
    fd_ = open(path.c_str(), kHarmless | O_NONBLOCK);
    // A regular file that a file server has leased to a client: the lease is called back meanwhile.
    if (fd_ < 0 && errno == EWOULDBLOCK) fd_ = open(path.c_str(), kHarmless);
    if (fd_ >= 0) return;
    const int error = errno;
    if (error == ENXIO) fail_as_not_regular(path);  // a socket
    if (error == ENOENT || error == ENOTDIR) fail(ErrorCode::not_found, path, ": no such file");
    fail(ErrorCode::io, path, ": cannot be opened: ", std::strerror(error));
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// Size of an open regular file; anything else (a folder, a FIFO, a device) is refused.
int64_t regular_size(const Descriptor& file, const std::string& path) {
  struct stat status{};
  if (fstat(file.get(), &status) != 0) fail(ErrorCode::io, path, ": cannot be read: ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail_as_not_regular(path);
  return status.st_size;
}

}  // namespace

std::string_view file_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_regular_file(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_directory(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string read_file(const std::string& path, int64_t max_bytes) {
  const Descriptor file(path);
  const int64_t size = regular_size(file, path);
  if (size > max_bytes)
    fail(ErrorCode::too_large, path, ": ", size, " bytes, at most ", max_bytes, " are accepted");
  std::string bytes(static_cast<size_t>(size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t got = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorCode::io, path, ": cannot be read: ", std::strerror(errno));
    if (got == 0) fail(ErrorCode::io, path, ": became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const Descriptor file(path);
  size_ = static_cast<size_t>(regular_size(file, path));
  if (size_ == 0) return;
  data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    fail(ErrorCode::io, path, ": cannot be mapped: ", std::strerror(errno));
  }
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

void MappedFile::release_pages() const {
  if (data_) madvise(data_, size_, MADV_DONTNEED);
}

}  // namespace shoal
