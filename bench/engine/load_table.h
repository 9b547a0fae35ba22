// Levels as tables for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/engine/level_figures.h"
#include "bench/engine/promises.h"

namespace shoal::bench {

// Rows of cells as lines: the first row is the heading, columns are as wide as their widest cell, the first
// is flush left and the others flush right.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

// Throughput, latency, listeners, caches and memory, one row for each level in each table; then failures, if
// there are any, and the promises.
std::string load_table(std::span<const LevelFigures> levels);

}  // namespace shoal::bench
