// shoal cache: shows and clears the files on disk.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/cli.h"
#include "shoal/clip_cache.h"
#include "shoal/settings.h"

namespace shoal::cli {
namespace {

struct CacheOptions {
  std::string dir;
  bool json = false;
};

// The folder that the engine would use.
EngineConfig config_of(const CacheOptions& options) {
  EngineConfig config = resolve_settings(process_settings({}, "")).config;
  if (!options.dir.empty()) config.cache_dir = options.dir;
  return config;
}

void print(const CacheOptions& options, const char* verb, const EngineConfig& config,
           const ClipCacheUsage& usage) {
  const std::string dir = clip_cache_dir(config);
  const std::string limit =
      config.cache_disk_mb > 0 ? concat("limit ", config.cache_disk_mb, " MiB") : "no limit";
  if (options.json) {
    const nlohmann::ordered_json value = {{"dir", dir},
                                          {"files", usage.files},
                                          {"bytes", usage.bytes},
                                          {"disk_bytes", usage.disk_bytes},
                                          {"cache_disk_mb", config.cache_disk_mb}};
    std::cout << value.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
  } else if (dir.empty()) {
    std::printf("no cache folder: the setting cache_dir is \"none\", or neither it nor HOME is set\n");
  } else {
    std::printf("%s: %s%lld file%s of encoded clips, %lld KiB on disk (%s)\n", dir.c_str(), verb,
                static_cast<long long>(usage.files), usage.files == 1 ? "" : "s",
                static_cast<long long>(usage.disk_bytes / 1024), limit.c_str());
  }
}

void show_cache(const CacheOptions& options) {
  const EngineConfig config = config_of(options);
  print(options, "", config, clip_cache_usage(clip_cache_dir(config)));
}

void clear_cache(const CacheOptions& options) {
  const EngineConfig config = config_of(options);
  const std::string dir = clip_cache_dir(config);
  print(options, "removed ", config, clear_clip_cache(dir));
  if (const int64_t left = clip_cache_usage(dir).files; left > 0)
    fail(ErrorCode::io, dir, ": ", left, " files could not be removed");
}

void add_options(CLI::App& command, const std::shared_ptr<CacheOptions>& options) {
  command
      .add_option("--cache-dir", options->dir,
                  "the folder; default: the setting cache_dir, or $XDG_CACHE_HOME/shoal, or ~/.cache/shoal")
      ->type_name("DIR");
  command.add_flag("--json", options->json, "print as JSON: dir, files, bytes, disk_bytes, cache_disk_mb");
}

}  // namespace

void add_cache(CLI::App& app) {
  const auto options = std::make_shared<CacheOptions>();
  CLI::App& command = *app.add_subcommand("cache", "Show or clear the encoded clips kept on disk");
  command.footer(
      "Examples:\n"
      "  shoal cache\n"
      "  shoal cache clear");
  add_options(command, options);
  command.require_subcommand(0, 1);
  command.callback([options, &command] {
    if (command.get_subcommands().empty()) show_cache(*options);
  });
  CLI::App& clear = *command.add_subcommand(
      "clear", "Remove the files that Shoal wrote there; clips are encoded again when they are needed");
  add_options(clear, options);
  clear.callback([options] { clear_cache(*options); });
  clear.footer("Example:\n  shoal cache clear --cache-dir /var/cache/shoal");
}

}  // namespace shoal::cli
