// One level of load.
#pragma once

#include <cstdint>

namespace shoal::load {

struct LevelPlan {
  int users = 1;           // closed loop: each asks again when its answer has ended
  double rate_per_s = 0;   // above 0, an open loop: requests arrive at random, whatever the server does
  int64_t requests = 0;    // 0: until the duration is over
  double duration_s = 0;   // in which requests begin; 0: until the requests are used up
  double leave_share = 0;  // of the requests, 0 to 1: leave after 0.1 to 1 s of sound
  bool real_time =
      false;              // users read what they have played, and half a second more, instead of all there is
  double slow_share = 0;  // of the requests, 0 to 1: read half as fast as the sound plays
  uint64_t seed = 1;      // of arrivals, of who leaves and of who is slow
  uint64_t first_request = 0;

  bool open_loop() const { return rate_per_s > 0; }
  // Throws Error(invalid_argument) naming the option.
  void validate() const;
};

// Seconds of sound after which request `index` leaves; 0: it stays.
double leaves_after_s(const LevelPlan& plan, uint64_t index);
// Whether request `index` is read slowly. Who leaves is not slow.
bool reads_slowly(const LevelPlan& plan, uint64_t index);
// Seconds that a reader waits who has `heard_s` of sound, the first of it since `reading_s`, and takes `pace`
// seconds of it in a second and half a second more at first; pace 0: as fast as it comes.
double wait_of_reader_s(double pace, double heard_s, double reading_s);

}  // namespace shoal::load
