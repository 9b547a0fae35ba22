// shoal inspect --memory: what an engine would take of its device, before any weight is read.
#pragma once

#include <string>

#include "cli/engine_settings.h"

namespace shoal::cli {

struct MemoryTableOptions {
  std::string dir;  // model folder, random:s1-mini, random:s2-pro or random:kokoro; empty: the setting, or
                    // the built-in voice
  std::string precision;  // empty: the setting
  bool json = false;
};

// Prints the table to standard output. Throws Error as loading the configuration of a model does;
// unavailable, unsupported (the device); resource_exhausted, after the table, when it does not fit.
void print_memory(const MemoryTableOptions& options, const EngineSettings& settings);

}  // namespace shoal::cli
