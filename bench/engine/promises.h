// The promises of `shoal bench engine`.
#pragma once

#include <span>
#include <vector>

#include "bench/engine/level_figures.h"
#include "bench/measure/promises.h"

namespace shoal::bench {

// As those of JudgedLevel; cancelled requests do not count.
std::vector<Scaling> scaling_of(std::span<const LevelFigures> levels);
std::vector<Promise> promises_of(std::span<const LevelFigures> levels);

}  // namespace shoal::bench
