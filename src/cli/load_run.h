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
  std::string random, listen = "fast", texts, frames, phonemes, json;
  std::vector<int> concurrency = {1, 2, 4, 8};
  std::optional<int64_t> requests;
  std::optional<double> duration_s, rate_per_s;  // with a rate the loop is open
  int voices = 0;
  std::optional<int> warm_up_requests;
  std::optional<double> voice_seconds;
  std::optional<double> shared_voice;
  uint64_t seed = 1;
  bool limits = false;
};

// Prints tables to standard output, or JSON. Throws Error as the engine does; invalid_argument naming the
// option; io (the report); cancelled when it was interrupted, after reporting what there is.
void run_load(const LoadOptions& options);

}  // namespace shoal::cli
