// The options of `shoal bench serve` as what the load program is told.
#pragma once

#include <vector>

#include "bench/load/generator.h"
#include "bench/load/level_plan.h"
#include "cli/server_load.h"

namespace shoal::cli {

// Whom to ask, and for what. Throws Error: invalid_argument naming the option; not_found, io and too_large
// (the file of texts).
load::GeneratorOptions generator_options(const ServerLoadOptions& o);
// The levels, or the first one of a sweep. Throws Error(invalid_argument) naming the option.
std::vector<load::LevelPlan> plans_of(const ServerLoadOptions& o);

}  // namespace shoal::cli
