// When the next request of a load is due.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

namespace shoal::bench {

enum class Listening {
  fast,       // takes every piece at once
  real_time,  // plays: takes the next pieces when the ones before have been heard
};

// One level of load.
struct LevelPlan {
  // Closed loop: the number of users; each submits when its last request has ended.
  int users = 1;
  // Above 0: open loop, requests arrive at this mean rate at random times (Poisson), independent of earlier
  // ones; `users` is ignored.
  double rate_per_s = 0;
  // The level ends when this many requests have been submitted (0: no limit) or this time has passed (0: no
  // limit).
  int64_t requests = 0;
  double duration_s = 0;
  Listening listening = Listening::fast;
  uint64_t seed = 1;           // of the arrivals
  uint64_t first_request = 0;  // index in the workload

  bool open_loop() const { return rate_per_s > 0; }
  // Throws Error(invalid_argument) naming the option: 1 to 256 users, a rate of at most 10,000 a second, a
  // level that ends.
  void validate() const;
};

// Without a clock: times in microseconds are given and returned, so tests replay it.
class Supply {
 public:
  // plan: validated.
  Supply(const LevelPlan& plan, int64_t start_us);

  // When the next request is due: now or later; absent: not before a user is free, or never (exhausted).
  std::optional<int64_t> next_us() const;
  // The request at next_us() is submitted.
  void take();
  // Closed loop: a user may submit again from then on. Ignored in an open loop.
  void user_is_free(int64_t from_us);
  // No request will ever come after now_us.
  bool exhausted(int64_t now_us) const;
  void stop() { stopped_ = true; }
  int64_t taken() const { return taken_; }

 private:
  bool in_time(int64_t at_us) const { return end_us_ == 0 || at_us < end_us_; }

  const LevelPlan plan_;
  const int64_t start_us_, end_us_;  // end 0: no limit
  int64_t taken_ = 0;
  bool stopped_ = false;
  double arrival_s_ = 0;  // open loop: the next
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<int64_t>>
      free_;  // closed loop: users, from when
};

}  // namespace shoal::bench
