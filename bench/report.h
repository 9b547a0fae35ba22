// Figures as lines for people, and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/kokoro_figures.h"
#include "bench/load_figures.h"
#include "bench/machine.h"
#include "bench/model_figures.h"

namespace shoal::bench {

// Print to standard output.
void print(const MachineLimits& limits);
void print(const ModelFigures& figures);
void print(const LoadFigures& figures);
void print(const KokoroFigures& figures);

// Keys end in their units. null: not known, or not measured.
nlohmann::ordered_json json_of(const MachineLimits& limits);
nlohmann::ordered_json json_of(const ModelFigures& figures);
nlohmann::ordered_json json_of(const LoadFigures& figures);
nlohmann::ordered_json json_of(const KokoroFigures& figures);

}  // namespace shoal::bench
