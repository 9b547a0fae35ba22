// Until when a request may take.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shoal/engine_config.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// When a request's time is up. Its time runs while its reader waits for us, in the queue and for sound. It
// stands still while sound lies there that a listener has not taken: somebody who plays as he receives takes
// as long as the sound lasts, and waits for nothing. Pure: moments are microseconds of the caller's clock,
// and never go back.
class RequestDeadline {
 public:
  RequestDeadline() = default;  // never
  // end_us: if nothing is ever unread; 0: never. counts_unread: time runs on beside unread sound, as for who
  // wants the whole at once.
  explicit RequestDeadline(int64_t end_us, bool counts_unread = false)
      : end_us_(end_us), counts_unread_(counts_unread) {}

  // Sound lies there, from now until it is taken.
  void hold(int64_t now_us) {
    if (counts_unread_ || held_since_us_ != 0) return;
    held_since_us_ = now_us;
  }
  void resume(int64_t now_us) {
    if (held_since_us_ == 0) return;
    end_us_ += end_us_ == 0 ? 0 : now_us - held_since_us_;
    held_since_us_ = 0;
  }

  // 0: never. At `now_us` or before: the time is up. Later: it is up no earlier than then, so look again
  // then.
  int64_t at_us(int64_t now_us) const {
    if (end_us_ == 0 || held_since_us_ == 0) return end_us_;
    if (end_us_ <= held_since_us_) return end_us_;
    return now_us + std::max(end_us_ - held_since_us_, kLookAgainUs);
  }

 private:
  // So that who has little time left, and takes nothing, is not looked at all the time.
  static constexpr int64_t kLookAgainUs = 50'000;

  int64_t end_us_ = 0, held_since_us_ = 0;  // 0: never; not held
  bool counts_unread_ = false;
};

// Of a request that comes now.
inline RequestDeadline deadline_of(const EngineConfig& config, const SpeechRequest& request, int64_t now_us) {
  constexpr int64_t kLongest = int64_t{1}
                               << 50;  // microseconds; sums with the clock's stay far from overflow
  const bool whole = request.delivery == Delivery::whole;
  if (request.timeout.count() > 0)
    return RequestDeadline(now_us + std::min<int64_t>(request.timeout.count(), kLongest / 1000) * 1000,
                           whole);
  if (config.request_timeout_s == 0) return {};
  return RequestDeadline(now_us + int64_t{config.request_timeout_s} * 1'000'000, whole);
}

}  // namespace shoal::runtime
