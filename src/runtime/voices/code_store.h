// Codes of reference clips, encoded once: in memory by least recent use, and on disk.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shoal/clip_cache.h"
#include "shoal/statistics.h"

namespace shoal::runtime {

// SHA-256 of a clip's bytes: clients choose the bytes, so collisions must be infeasible.
using ClipHash = std::array<uint8_t, 32>;
ClipHash hash_clip(std::span<const std::byte> bytes);
std::string hex(const ClipHash& hash);

// The codes of one clip, immutable. 16 bits a code, because no
// codebook has more than 65,536 entries.
class ClipCodes {
 public:
  ClipCodes(std::vector<uint16_t> codes, int codebooks);
  std::span<const uint16_t> values() const { return values_; }  // [frames, codebooks]
  int codebooks() const { return codebooks_; }
  int64_t frames() const { return static_cast<int64_t>(values_.size()) / codebooks_; }
  int64_t bytes() const { return static_cast<int64_t>(values_.size_bytes()); }

 private:
  friend class CodeStore;
  ClipCodes() = default;
  std::shared_ptr<const void> owner_;
  std::span<const uint16_t> values_;
  int codebooks_ = 1;
};

// Thread-safe. A clip's codes depend on its bytes and on the codec that encoded it, not on its transcript:
// the same clip with other words is another voice with the same codes.
//
// A file holds magic, version, codec fingerprint, clip hash, counts, codes, and a checksum over all of it; it
// is written to a temporary name and renamed. A file that is damaged, or was written by another codec or for
// another clip, is dropped with a log line, never trusted.
//
// Clients choose how many clips there are, so the files have a limit. The folder is counted at the first
// write, and later writes are added; past the limit it is counted again and trimmed (trim_cache). Several
// processes may share the folder: each sees the files of the others when it counts, so together they may
// exceed the limit for a while, each by less than the limit.
class CodeStore {
 public:
  struct Options {
    int64_t max_clips = 1000;  // in memory
    std::string dir;           // of the files; empty: memory only
    std::string fingerprint;   // of the codec (codec_fingerprint.h), any bytes
    int codebooks = 0;
    int64_t codebook_size = 0;   // codes are below this
    int64_t max_disk_bytes = 0;  // of the files, as CacheUsage::disk_bytes counts; 0: no limit
  };
  explicit CodeStore(Options options);
  ~CodeStore();

  std::shared_ptr<const ClipCodes> find(const ClipHash& clip);
  // Stores and returns them. A disk error is logged and costs only the file.
  std::shared_ptr<const ClipCodes> put(const ClipHash& clip, std::vector<uint16_t> codes);
  void drop_memory();
  int64_t bytes() const;  // in memory
  VoiceStatistics statistics() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The folder of the disk caches: `configured`, else $SHOAL_CACHE_DIR, else $XDG_CACHE_HOME/shoal, else
// ~/.cache/shoal; empty for "none" or when none of them is set.
std::string cache_dir(const std::string& configured);

// What `shoal cache` shows and clears: only files that this program wrote.
using CacheUsage = ClipCacheUsage;  // disk_bytes: the sum of disk_bytes_of(file)
// The disk space of a file in blocks of 4 KiB: small files are not free.
constexpr int64_t disk_bytes_of(int64_t file_bytes) { return (file_bytes + 4095) / 4096 * 4096; }
CacheUsage cache_usage(const std::string& dir);
CacheUsage clear_cache(const std::string& dir);
// When our files exceed max_disk_bytes, removes the files with the oldest modification time, which a
// CodeStore renews when it reads one, until at most three quarters of that are left.
struct TrimmedCache {
  CacheUsage left;
  int64_t refused_files = 0;  // could not be removed
};
TrimmedCache trim_cache(const std::string& dir, int64_t max_disk_bytes);

}  // namespace shoal::runtime
