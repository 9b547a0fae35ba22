#include "shoal/clip_cache.h"

#include "runtime/voices/code_store.h"

namespace shoal {

std::string clip_cache_dir(const EngineConfig& config) { return runtime::cache_dir(config.cache_dir); }

ClipCacheUsage clip_cache_usage(const std::string& dir) { return runtime::cache_usage(dir); }

ClipCacheUsage clear_clip_cache(const std::string& dir) { return runtime::clear_cache(dir); }

}  // namespace shoal
