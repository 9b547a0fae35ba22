#include "bench/engine/supply.h"

#include "bench/measure/draws.h"
#include "bench/measure/load_limits.h"

namespace shoal::bench {
namespace {

constexpr int kMostUsers = 256;

int64_t us(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

}  // namespace

void LevelPlan::validate() const { check_load(*this, kMostUsers); }

Supply::Supply(const LevelPlan& plan, int64_t start_us)
    : plan_(plan), start_us_(start_us), end_us_(plan.duration_s > 0 ? start_us + us(plan.duration_s) : 0) {
  if (plan_.open_loop()) {
    arrival_s_ = arrival_gap_s(plan_.rate_per_s, plan_.seed, 0);
  } else {
    for (int user = 0; user < plan_.users; ++user) free_.push(start_us_);
  }
}

std::optional<int64_t> Supply::next_us() const {
  if (stopped_ || (plan_.requests > 0 && taken_ >= plan_.requests)) return std::nullopt;
  if (!plan_.open_loop() && free_.empty()) return std::nullopt;
  const int64_t next = plan_.open_loop() ? start_us_ + us(arrival_s_) : free_.top();
  return in_time(next) ? std::optional(next) : std::nullopt;
}

void Supply::take() {
  CHECK(next_us(), "no request is due");
  ++taken_;
  if (plan_.open_loop()) {
    arrival_s_ += arrival_gap_s(plan_.rate_per_s, plan_.seed, static_cast<uint64_t>(taken_));
  } else {
    free_.pop();
  }
}

void Supply::user_is_free(int64_t from_us) {
  if (!plan_.open_loop()) free_.push(from_us);
}

bool Supply::exhausted(int64_t now_us) const {
  if (stopped_ || (plan_.requests > 0 && taken_ >= plan_.requests)) return true;
  if (plan_.open_loop()) return !next_us();
  return !in_time(now_us);
}

}  // namespace shoal::bench
