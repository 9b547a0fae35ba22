// The figures of `shoal bench engine` as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "bench/engine/level_figures.h"

namespace shoal::cli {

// "levels" and "promises": keys end in their units.
nlohmann::ordered_json load_json(std::span<const bench::LevelFigures> levels);

}  // namespace shoal::cli
