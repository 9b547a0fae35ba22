#include "bench/runs/figures_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace shoal::runs {

using nlohmann::ordered_json;

ordered_json rounded(double value) { return std::round(value * 1e3) / 1e3; }
ordered_json rounded(const std::optional<double>& value) { return value ? rounded(*value) : ordered_json(); }

ordered_json json_of(const bench::Percentiles& p) {
  if (p.count == 0) return {{"count", 0}};
  return {{"count", p.count},      {"mean", rounded(p.mean)}, {"p50", rounded(p.p50)},
          {"p90", rounded(p.p90)}, {"p95", rounded(p.p95)},   {"p99", rounded(p.p99)},
          {"max", rounded(p.max)}};
}

}  // namespace shoal::runs
