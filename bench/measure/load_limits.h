// What a level of load may ask for, in every load program.
#pragma once

#include "base/error.h"

namespace shoal::bench {

// Plan: rate_per_s, users, requests and duration_s, where 0 means none, and open_loop(). Throws
// Error(invalid_argument).
template <typename Plan>
void check_load(const Plan& plan, int most_users) {
  constexpr double kMostPerSecond = 10'000, kMostSeconds = 7 * 24 * 3600;
  if (!(plan.rate_per_s >= 0 && plan.rate_per_s <= kMostPerSecond))
    fail(ErrorCode::invalid_argument, "rate: expected more than 0, at most ", kMostPerSecond,
         " requests a second, got ", plan.rate_per_s);
  if (!plan.open_loop() && (plan.users < 1 || plan.users > most_users))
    fail(ErrorCode::invalid_argument, "concurrency: expected 1 to ", most_users, " users, got ", plan.users);
  if (plan.requests < 0)
    fail(ErrorCode::invalid_argument, "requests: expected 1 or more, got ", plan.requests);
  if (!(plan.duration_s >= 0 && plan.duration_s <= kMostSeconds))
    fail(ErrorCode::invalid_argument, "duration: expected more than 0, at most ", kMostSeconds,
         " seconds, got ", plan.duration_s);
  if (plan.requests == 0 && plan.duration_s == 0)
    fail(ErrorCode::invalid_argument, "requests: expected how many, or a duration, or the level never ends");
}

}  // namespace shoal::bench
