#include "runtime/voices/code_store.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <list>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "runtime/voices/code_file.h"
#include "runtime/voices/new_file.h"

namespace shoal::runtime {
namespace {

using Codes = std::shared_ptr<const ClipCodes>;

struct FirstBytes {  // of a SHA-256: uniform already
  size_t operator()(const ClipHash& hash) const {
    size_t value = 0;
    std::memcpy(&value, hash.data(), sizeof value);
    return value;
  }
};

// The clips used last, newest first. Not thread-safe.
class RecentClips {
 public:
  explicit RecentClips(int64_t max_clips)
      : max_clips_(static_cast<size_t>(std::max<int64_t>(0, max_clips))) {}

  Codes find(const ClipHash& clip) {
    const auto found = places_.find(clip);
    if (found == places_.end()) return nullptr;
    clips_.splice(clips_.begin(), clips_, found->second);
    return found->second->second;
  }

  // An existing entry wins, so that all users of a clip share one copy.
  Codes insert(const ClipHash& clip, Codes codes) {
    if (Codes present = find(clip)) return present;
    clips_.emplace_front(clip, codes);
    try {
      places_.emplace(clip, clips_.begin());
    } catch (...) {
      clips_.pop_front();
      throw;
    }
    bytes_ += codes->bytes();
    if (clips_.size() > max_clips_) drop_oldest();
    return codes;
  }

  void clear() { *this = RecentClips(static_cast<int64_t>(max_clips_)); }
  int64_t size() const { return static_cast<int64_t>(clips_.size()); }
  int64_t bytes() const { return bytes_; }

 private:
  void drop_oldest() {
    bytes_ -= clips_.back().second->bytes();
    places_.erase(clips_.back().first);
    clips_.pop_back();
  }

  size_t max_clips_;
  int64_t bytes_ = 0;
  std::list<std::pair<ClipHash, Codes>> clips_;
  std::unordered_map<ClipHash, std::list<std::pair<ClipHash, Codes>>::iterator, FirstBytes> places_;
};

void make_folders_of(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) fail(ErrorCode::io, path, ": its folder cannot be created: ", error.message());
}

void replace_file(const std::string& path, std::span<const std::byte> bytes) {
  make_folders_of(path);
  const std::string beside = (std::filesystem::path(path).parent_path() / temporary_name()).string();
  write_new_file(beside, bytes, NewFile::cached);
  if (std::rename(beside.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  unlink(beside.c_str());
  errno = error;
  fail_with_errno(path, "cannot be written");
}

// Records the use of the file: trim_cache removes the least recently used first. A resolution of a minute is
// enough and saves most disk writes. If the use cannot be recorded, the file is only removed earlier.
void renew(const std::string& path, time_t modified_s) {
  constexpr time_t kFineEnough_s = 60;
  const time_t now_s = std::time(nullptr);
  if (modified_s < now_s - kFineEnough_s || modified_s > now_s + kFineEnough_s)
    static_cast<void>(utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW));
}

}  // namespace

ClipHash hash_clip(std::span<const std::byte> bytes) { return Sha256().update(bytes).finish(); }

std::string hex(const ClipHash& hash) { return hex_digits(hash); }

ClipCodes::ClipCodes(std::vector<uint16_t> codes, int codebooks) : codebooks_(codebooks) {
  CHECK(codebooks > 0 && codes.size() % static_cast<size_t>(codebooks) == 0, codes.size(), " codes in ",
        codebooks, " codebooks");
  const auto owner = std::make_shared<const std::vector<uint16_t>>(std::move(codes));
  values_ = *owner;
  owner_ = owner;
}

struct CodeStore::State {
  Options options;
  Digest codec;
  mutable std::mutex mutex;  // guards recent and counts; never held over the disk
  RecentClips recent;
  VoiceStatistics counts;
  std::atomic<bool> disk_refused{false};  // and that was logged
  std::mutex disk_mutex;                  // guards disk_bytes, also while the folder is trimmed
  std::optional<int64_t> disk_bytes;      // of all files in the folder, as far as we know

  explicit State(Options o)
      : options(std::move(o)),
        codec(codec_digest(options.fingerprint, options.codebooks, options.codebook_size)),
        recent(options.max_clips) {}

  CodeFileKey key(const ClipHash& clip) const {
    return {
        .clip = clip, .codec = codec, .codebooks = options.codebooks, .codebook_size = options.codebook_size};
  }

  Codes load(const ClipHash& clip);
  void save(const ClipHash& clip, const ClipCodes& codes);
  void keep_limit(int64_t written_bytes);
  void drop(const std::string& path, std::string_view problem);
  void tell_refusal(const std::string& problem);
};

// One line for a disk that refuses, until it works again: every clip would say the same.
void CodeStore::State::tell_refusal(const std::string& problem) {
  if (!disk_refused.exchange(true)) log(LogLevel::warning, "voice cache: ", problem, "; going on without it");
}

void CodeStore::State::drop(const std::string& path, std::string_view problem) {
  log(LogLevel::warning, "voice cache: ", problem, "; dropped");
  if (unlink(path.c_str()) != 0 && errno != ENOENT) tell_refusal(concat(path, ": cannot be removed"));
  const std::lock_guard lock(mutex);
  ++counts.dropped_files;
}

// From the disk; null when it is not there or not to be trusted.
Codes CodeStore::State::load(const ClipHash& clip) {
  if (options.dir.empty()) return nullptr;
  const std::string path = code_file_path(options.dir, key(clip));
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) tell_refusal(concat(path, ": cannot be read: ", std::strerror(errno)));
    return nullptr;
  }
  try {
    // A link or a pipe was not made by this program, and opening a pipe would wait.
    if (!S_ISREG(status.st_mode)) fail(ErrorCode::corrupt_file, path, ": expected a regular file");
    const auto file =
        std::make_shared<const std::string>(read_file(path, max_code_file_bytes(options.codebooks)));
    const std::shared_ptr<ClipCodes> codes(new ClipCodes);
    codes->values_ = parse_code_file(std::as_bytes(std::span(*file)), key(clip), path);
    codes->codebooks_ = options.codebooks;
    codes->owner_ = file;
    renew(path, status.st_mtim.tv_sec);
    return codes;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt_file || error.code() == ErrorCode::too_large) {
      drop(path, error.message());
    } else if (error.code() != ErrorCode::not_found) {  // gone since we looked: somebody cleared the cache
      tell_refusal(error.message());
    }
  }
  return nullptr;
}

void CodeStore::State::save(const ClipHash& clip, const ClipCodes& codes) {
  if (options.dir.empty()) return;
  try {
    const std::vector<std::byte> file = make_code_file(key(clip), codes.values());
    replace_file(code_file_path(options.dir, key(clip)), file);
    disk_refused = false;
    if (options.max_disk_bytes > 0) keep_limit(disk_bytes_of(static_cast<int64_t>(file.size())));
  } catch (const Error& error) {
    tell_refusal(error.message());
  }
}

void CodeStore::State::keep_limit(int64_t written_bytes) {
  const std::lock_guard lock(disk_mutex);
  if (disk_bytes) *disk_bytes += written_bytes;
  if (disk_bytes && *disk_bytes <= options.max_disk_bytes) return;
  const TrimmedCache trimmed = trim_cache(options.dir, options.max_disk_bytes);
  disk_bytes = trimmed.left.disk_bytes;
  if (trimmed.refused_files == 0) return;
  tell_refusal(concat(options.dir, ": the limit of ", options.max_disk_bytes, " bytes is passed, but ",
                      trimmed.refused_files, " files cannot be removed"));
  // The next attempt comes a quarter of the limit later, not with the next clip.
  disk_bytes = std::min(*disk_bytes, options.max_disk_bytes - options.max_disk_bytes / 4);
}

CodeStore::CodeStore(Options options) : state_(std::make_unique<State>(std::move(options))) {
  const Options& o = state_->options;
  CHECK(o.codebooks > 0 && o.codebook_size > 0 && o.codebook_size <= 65536, o.codebooks, " codebooks of ",
        o.codebook_size);
}

CodeStore::~CodeStore() = default;

Codes CodeStore::find(const ClipHash& clip) {
  State& s = *state_;
  {
    const std::lock_guard lock(s.mutex);
    if (Codes codes = s.recent.find(clip)) {
      ++s.counts.memory_hits;
      return codes;
    }
  }
  Codes codes = s.load(clip);
  if (!codes) return nullptr;
  const std::lock_guard lock(s.mutex);
  ++s.counts.disk_hits;
  return s.recent.insert(clip, std::move(codes));
}

Codes CodeStore::put(const ClipHash& clip, std::vector<uint16_t> values) {
  State& s = *state_;
  CHECK(std::ranges::all_of(values, [&](uint16_t code) { return code < s.options.codebook_size; }),
        "a code outside the codebook of ", s.options.codebook_size);
  Codes codes = std::make_shared<const ClipCodes>(std::move(values), s.options.codebooks);
  s.save(clip, *codes);
  const std::lock_guard lock(s.mutex);
  ++s.counts.encoded;
  return s.recent.insert(clip, std::move(codes));
}

void CodeStore::drop_memory() {
  const std::lock_guard lock(state_->mutex);
  state_->recent.clear();
}

int64_t CodeStore::bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->recent.bytes();
}

VoiceStatistics CodeStore::statistics() const {
  const std::lock_guard lock(state_->mutex);
  VoiceStatistics statistics = state_->counts;
  statistics.in_memory = state_->recent.size();
  return statistics;
}

}  // namespace shoal::runtime
