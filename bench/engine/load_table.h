// Levels as tables for people.
#pragma once

#include <span>
#include <string>

#include "bench/engine/level_figures.h"
#include "bench/engine/promises.h"

namespace shoal::bench {

// Throughput, latency, listeners, caches and memory, one row for each level in each table; then failures, if
// there are any, and the promises.
std::string load_table(std::span<const LevelFigures> levels);

}  // namespace shoal::bench
