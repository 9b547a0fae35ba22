// The figures of `shoal bench engine` as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "bench/engine/level_figures.h"
#include "bench/machine.h"

namespace shoal::cli {

nlohmann::ordered_json json_of(const bench::MachineLimits& limits);
// "levels" and "promises": keys end in their units.
nlohmann::ordered_json json_of(std::span<const bench::LevelFigures> levels);

}  // namespace shoal::cli
