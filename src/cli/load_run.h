// One run of `shoal bench engine`: levels of load, then the report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/engine_settings.h"

namespace shoal::cli {

struct LoadOptions {
  EngineSettings settings;
  std::string random, listen = "fast", texts, frames, json;
  std::vector<int> concurrency = {1, 2, 4, 8};
  int64_t requests = 0;
  double duration_s = 0, rate_per_s = 0;
  int voices = 0, warm_up_requests = -1;
  double voice_seconds = 5;
  std::optional<double> shared_voice;
  uint64_t seed = 1;
  bool limits = false;
};

// Prints tables to standard output, or JSON. Throws Error as the engine does; invalid_argument naming the
// option; io (the report); cancelled when it was interrupted, after reporting what there is.
void run_load(const LoadOptions& options);

}  // namespace shoal::cli
