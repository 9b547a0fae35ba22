#include "fleet/memory_file.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

namespace shoal::fleet {

MemoryFile::MemoryFile(const char* name, std::string_view content) : file_(memfd_create(name, MFD_CLOEXEC)) {
  try {
    replace(content);
  } catch (...) {
    if (file_ >= 0) close(file_);
    throw;
  }
}

MemoryFile::~MemoryFile() { close(file_); }

std::string MemoryFile::path() const { return concat("/proc/", getpid(), "/fd/", file_); }

void MemoryFile::replace(std::string_view content) const {
  bool done = file_ >= 0 && ftruncate(file_, 0) == 0;
  for (size_t written = 0; done && written < content.size();) {
    const ssize_t count =
        pwrite(file_, content.data() + written, content.size() - written, static_cast<off_t>(written));
    done = count > 0;
    if (done) written += static_cast<size_t>(count);
  }
  if (!done) fail(ErrorCode::io, "no file in memory for the balancer: ", std::strerror(errno));
}

}  // namespace shoal::fleet
