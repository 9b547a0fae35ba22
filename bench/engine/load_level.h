// Runs one level of load against an engine.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/engine/level_figures.h"
#include "bench/engine/supply.h"
#include "bench/engine/workload.h"
#include "shoal/engine.h"

namespace shoal::bench {

struct LevelProgress {
  double fraction = 0;
  int64_t submitted = 0, ended = 0, open = 0;
  double audio_s_per_s = 0;  // so far
};

// Both may be empty; asked and called on the calling thread, about twenty times a second.
struct LevelWatch {
  std::function<bool()> interrupted;  // true: submit no more, cancel open requests, return
  std::function<void(const LevelProgress&)> on_progress;
};

// Returns when every request has ended. One thread, the caller's, submits and reads for all users. Requests
// that fail are counted, not thrown. Throws Error(invalid_argument) as LevelPlan::validate; unavailable when
// the engine is not running.
LevelFigures run_level(Engine& engine, const Workload& workload, const LevelPlan& plan,
                       const LevelWatch& watch = {});

}  // namespace shoal::bench
