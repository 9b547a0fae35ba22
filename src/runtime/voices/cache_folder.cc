// The cache folder as a whole: its path, the files that this program keeps in it, and clearing them.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

#include "base/function_ref.h"
#include "base/log.h"
#include "runtime/voices/code_file.h"
#include "runtime/voices/code_store.h"
#include "runtime/voices/new_file.h"

namespace shoal::runtime {
namespace {

// An open folder. Everything is reached through descriptors and no link is followed, so that a folder which
// somebody swaps for a link meanwhile leads nowhere else.
class Folder {
 public:
  Folder(int parent, const std::string& name)
      : fd_(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {}
  ~Folder() {
    if (fd_ >= 0) close(fd_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  int fd() const { return fd_; }

  // Sorted; empty when it cannot be read.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    const int again = fd_ < 0 ? -1 : openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* listing = again < 0 ? nullptr : fdopendir(again);
    if (!listing) {
      if (again >= 0) close(again);
      return names;
    }
    while (const dirent* entry = readdir(listing)) names.emplace_back(entry->d_name);
    closedir(listing);
    std::ranges::sort(names);
    return names;
  }

 private:
  int fd_;
};

bool is_shard(std::string_view name) {
  return name.size() == 2 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct OurFile {
  std::string shard, name;
  int64_t bytes = 0;
  std::pair<int64_t, int64_t> used;  // s, ns
};

// A file that this program wrote, by name, kind and magic.
std::optional<OurFile> find_ours(const Folder& folder, const std::string& shard, const std::string& name) {
  constexpr int64_t kMaxBytes = int64_t{1} << 40;  // far more than any, and sums stay in range
  if (!name.ends_with(kCodeFileEnding) && !is_temporary_name(name)) return std::nullopt;
  const int fd = openat(folder.fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat status{};
  char magic[kCodeFileMagic.size()] = {};
  const bool ours = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size < kMaxBytes &&
                    pread(fd, magic, sizeof magic, 0) == static_cast<ssize_t>(sizeof magic) &&
                    std::string_view(magic, sizeof magic) == kCodeFileMagic;
  close(fd);
  if (!ours) return std::nullopt;
  return OurFile{shard, name, status.st_size, {status.st_mtim.tv_sec, status.st_mtim.tv_nsec}};
}

void add(CacheUsage& usage, const OurFile& file) {
  ++usage.files;
  usage.bytes += file.bytes;
  usage.disk_bytes += disk_bytes_of(file.bytes);
}

// Calls visit(folder, file) for each of our files; it says whether to count it.
CacheUsage count_ours(const Folder& voices,
                      FunctionRef<bool(const Folder& folder, const OurFile& file)> visit) {
  CacheUsage usage;
  for (const std::string& shard : voices.names()) {
    if (!is_shard(shard)) continue;
    const Folder folder(voices.fd(), shard);
    for (const std::string& name : folder.names()) {
      const std::optional<OurFile> file = find_ours(folder, shard, name);
      if (file && visit(folder, *file)) add(usage, *file);
    }
  }
  return usage;
}

bool remove_file(const Folder& folder, const std::string& name) {
  if (unlinkat(folder.fd(), name.c_str(), 0) == 0) return true;
  if (errno != ENOENT) log(LogLevel::warning, "cache: ", name, ": cannot be removed: ", std::strerror(errno));
  return false;
}

std::string voices_in(const std::string& dir) { return dir + "/" + std::string(kCodeFolder); }

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string cache_dir(const std::string& configured) {
  const std::string named = configured.empty() ? environment("SHOAL_CACHE_DIR") : configured;
  if (named == "none") return "";
  if (!named.empty()) return named;
  // The XDG specification says to ignore relative paths.
  if (const std::string xdg = environment("XDG_CACHE_HOME"); xdg.starts_with("/")) return xdg + "/shoal";
  if (const std::string home = environment("HOME"); home.starts_with("/")) return home + "/.cache/shoal";
  return "";
}

CacheUsage cache_usage(const std::string& dir) {
  if (dir.empty()) return {};
  const Folder voices(AT_FDCWD, voices_in(dir));
  return count_ours(voices, [](const Folder&, const OurFile&) { return true; });
}

CacheUsage clear_cache(const std::string& dir) {
  if (dir.empty()) return {};
  const Folder voices(AT_FDCWD, voices_in(dir));
  const CacheUsage removed = count_ours(
      voices, [](const Folder& folder, const OurFile& file) { return remove_file(folder, file.name); });
  // Folders that are empty now; the others stay.
  for (const std::string& shard : voices.names())
    if (is_shard(shard)) unlinkat(voices.fd(), shard.c_str(), AT_REMOVEDIR);
  if (voices.fd() >= 0) rmdir(voices_in(dir).c_str());
  return removed;
}

TrimmedCache trim_cache(const std::string& dir, int64_t max_disk_bytes) {
  if (dir.empty()) return {};
  const Folder voices(AT_FDCWD, voices_in(dir));
  std::vector<OurFile> files;
  TrimmedCache trimmed;
  trimmed.left = count_ours(voices, [&](const Folder&, const OurFile& file) {
    files.push_back(file);
    return true;
  });
  if (trimmed.left.disk_bytes <= max_disk_bytes) return trimmed;

  std::ranges::sort(files, [](const OurFile& a, const OurFile& b) {
    return std::tie(a.used, a.shard, a.name) < std::tie(b.used, b.shard, b.name);
  });
  for (const OurFile& file : files) {
    if (trimmed.left.disk_bytes <= max_disk_bytes - max_disk_bytes / 4) break;
    const Folder folder(voices.fd(), file.shard);
    const std::optional<OurFile> now = find_ours(folder, file.shard, file.name);
    if (now && now->used != file.used) continue;  // just used, or another file by now
    if (now && unlinkat(folder.fd(), file.name.c_str(), 0) != 0 && errno != ENOENT) {
      ++trimmed.refused_files;
      continue;
    }
    --trimmed.left.files;
    trimmed.left.bytes -= file.bytes;
    trimmed.left.disk_bytes -= disk_bytes_of(file.bytes);
  }
  return trimmed;
}

}  // namespace shoal::runtime
