// The codes of reference clips that engines keep on disk (EngineConfig::cache_dir).
#pragma once

#include <cstdint>
#include <string>

#include "shoal/engine_config.h"

namespace shoal {

struct ClipCacheUsage {
  int64_t files = 0, bytes = 0;
  int64_t disk_bytes = 0;  // in blocks of 4 KiB
};

// The folder: cache_dir, else $SHOAL_CACHE_DIR, else $XDG_CACHE_HOME/shoal, else ~/.cache/shoal; empty: none.
std::string clip_cache_dir(const EngineConfig& config);
// Both count only files that Shoal wrote; a missing folder has none. They throw nothing: files that cannot be
// read are not counted, files that cannot be removed stay.
ClipCacheUsage clip_cache_usage(const std::string& dir);
// Removes them and returns how many were removed. Clips are encoded again when they are needed.
ClipCacheUsage clear_clip_cache(const std::string& dir);

}  // namespace shoal
