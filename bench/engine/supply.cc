#include "bench/engine/supply.h"

#include "base/error.h"
#include "bench/engine/draws.h"

namespace shoal::bench {
namespace {

constexpr int kMostUsers = 256;
constexpr double kMostPerSecond = 10'000, kMostSeconds = 7 * 24 * 3600;

int64_t us(double seconds) { return static_cast<int64_t>(seconds * 1e6); }

}  // namespace

void LevelPlan::validate() const {
  if (!(rate_per_s >= 0 && rate_per_s <= kMostPerSecond))
    fail(ErrorCode::invalid_argument, "rate: expected more than 0, at most ", kMostPerSecond,
         " requests a second, got ", rate_per_s);
  if (!open_loop() && (users < 1 || users > kMostUsers))
    fail(ErrorCode::invalid_argument, "concurrency: expected 1 to ", kMostUsers, " users, got ", users);
  if (requests < 0) fail(ErrorCode::invalid_argument, "requests: expected 1 or more, got ", requests);
  if (!(duration_s >= 0 && duration_s <= kMostSeconds))
    fail(ErrorCode::invalid_argument, "duration: expected more than 0, at most ", kMostSeconds,
         " seconds, got ", duration_s);
  if (requests == 0 && duration_s == 0)
    fail(ErrorCode::invalid_argument, "requests: expected how many, or a duration, or the level never ends");
}

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
