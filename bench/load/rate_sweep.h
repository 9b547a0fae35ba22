// How many requests a second a server keeps up with: which rate to try next. Pure.
#pragma once

#include <optional>

namespace shoal::load {

// Of the requests that stayed, so many must keep the objectives, or the rate is too high.
constexpr double kKeptShare = 0.95;

// Doubles the rate until it is too high, then halves the distance to the highest one that was kept, three
// times.
class RateSweep {
 public:
  explicit RateSweep(double first_per_s) : next_per_s_(first_per_s) {}

  // Nothing: the sweep has ended.
  std::optional<double> next() const { return next_per_s_; }
  // The level of next() has ended.
  void add(bool kept);
  // The highest rate that was kept; 0: none.
  double capacity_per_s() const { return kept_per_s_; }
  // Whether a higher one was tried and was too high.
  bool has_limit() const { return too_high_per_s_.has_value(); }

 private:
  std::optional<double> next_per_s_, too_high_per_s_;
  double kept_per_s_ = 0;
  int halvings_ = 0;
};

}  // namespace shoal::load
