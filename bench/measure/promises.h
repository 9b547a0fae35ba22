// The minimum figures that `shoal bench` checks, compared with the measurements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace shoal::bench {

// A level of load, as far as it is judged.
struct JudgedLevel {
  int users = 1;
  double rate_per_s = 0;  // above 0: an open loop, whatever the users are
  int64_t asked = 0;      // without those that were cancelled on purpose
  int64_t completed = 0;
  bool ran_dry = false;  // a listener of a completed request did
  double audio_s_per_s = 0;
  double latency_p50_s = 0, latency_p95_s = 0;
  bool open_loop() const { return rate_per_s > 0; }
};

// A level beside the first one, which it is compared with.
struct Scaling {
  double throughput = 0;       // seconds of sound per second, as a multiple of the first level's
  double added_latency_s = 0;  // of the median request
};

// One for each level; open loops and levels without figures are compared all the same.
std::vector<Scaling> scaling_of(std::span<const JudgedLevel> levels);

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
std::vector<Promise> promises_of(std::span<const JudgedLevel> levels);

// A line for each, for people.
std::string promise_table(std::span<const Promise> promises);

}  // namespace shoal::bench
