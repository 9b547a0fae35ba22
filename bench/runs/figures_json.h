// Figures as the files of a run write them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "bench/measure/samples.h"

namespace shoal::runs {

// To a thousandth: microseconds of milliseconds.
nlohmann::ordered_json rounded(double value);
nlohmann::ordered_json rounded(const std::optional<double>& value);  // null without one
// count, mean, p50, p90, p95, p99, max; without values only the count.
nlohmann::ordered_json json_of(const bench::Percentiles& percentiles);

}  // namespace shoal::runs
