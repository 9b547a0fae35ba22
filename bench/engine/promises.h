// The minimum figures that `shoal bench` checks, compared with the measurements.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/engine/level_figures.h"

namespace shoal::bench {

// A level beside the first one, which it is compared with.
struct Scaling {
  double throughput = 0;       // seconds of sound per second, as a multiple of the first level's
  double added_latency_s = 0;  // of the median request
};

// One for each level; open loops and levels without figures are compared all the same.
std::vector<Scaling> scaling_of(std::span<const LevelFigures> levels);

struct Promise {
  std::string what;  // "2 users: throughput of one"
  std::string unit;  // "x", "s", "ms", "%"
  double goal = 0;
  bool at_least = false;  // or at most
  double measured = 0;
  bool kept() const { return at_least ? measured >= goal : measured <= goal; }
};

// Those that these levels can show: 95th percentile of request latency under 5 s at each level; 99.9 % of the
// requests of the whole run succeed (cancelled ones do not count); ten users or more without an underrun at
// their latency; and, if the first level has one user, 2, 4 and 8 users with at least 1.8, 3.2 and 5 times
// its throughput for at most 100, 200 and 400 ms of added latency.
std::vector<Promise> promises_of(std::span<const LevelFigures> levels);

}  // namespace shoal::bench
