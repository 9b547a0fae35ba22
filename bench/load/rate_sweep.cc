#include "bench/load/rate_sweep.h"

namespace shoal::load {
namespace {

constexpr int kHalvings = 3;
constexpr double kHighest_per_s = 5'000;

}  // namespace

void RateSweep::add(bool kept) {
  if (!next_per_s_) return;
  const double rate_per_s = *next_per_s_;
  if (kept)
    kept_per_s_ = rate_per_s;
  else
    too_high_per_s_ = rate_per_s;
  next_per_s_.reset();
  if (!too_high_per_s_) {
    if (2 * rate_per_s <= kHighest_per_s) next_per_s_ = 2 * rate_per_s;
  } else if (halvings_++ < kHalvings) {
    next_per_s_ = (kept_per_s_ + *too_high_per_s_) / 2;
  }
}

}  // namespace shoal::load
