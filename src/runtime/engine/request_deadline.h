// Until when a request may take.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shoal/engine_config.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// Which time of a request counts.
enum class Counted {
  everything,  // all of it, for a request that does not stream
  waiting,     // while no sound is ready for the reader
  silence,     // while the listener has played everything it received: one that plays while receiving never
               // waits
};

// When a request's time is up. Time before the first sound always counts. Pure: moments are microseconds of
// the caller's clock.
class RequestDeadline {
 public:
  RequestDeadline() = default;  // never
  // allowed_us: the waiting time allowed; 0: unlimited.
  RequestDeadline(int64_t now_us, int64_t allowed_us, Counted counted)
      : left_us_(allowed_us), since_us_(now_us), never_(allowed_us == 0), counted_(counted) {}

  // The reader can now read this much more sound.
  void give(int64_t now_us, int64_t sound_us) {
    if (never_ || counted_ == Counted::everything) return;
    left_us_ -= waited_us(now_us);
    since_us_ = std::max(since_us_, now_us);
    if (counted_ == Counted::silence) dry_us_ = std::max(dry_us_, now_us) + sound_us;
    unread_ = true;
  }
  // The reader has read everything.
  void take(int64_t now_us) {
    left_us_ -= waited_us(now_us);
    since_us_ = std::max(since_us_, now_us);
    unread_ = false;
  }

  // 0: never. At `now_us` or before: the time is up. Later: it is up no earlier than then, so look again
  // then.
  int64_t at_us(int64_t now_us) const {
    if (never_) return 0;
    const int64_t waits_from_us = std::max(since_us_, dry_us_);
    if (left_us_ <= 0) return since_us_;
    return unread_ ? std::max(now_us, waits_from_us) + std::max(left_us_, kLookAgainUs)
                   : waits_from_us + left_us_;
  }

 private:
  // So that a request with little time left whose reader takes nothing is not checked all the time.
  static constexpr int64_t kLookAgainUs = 50'000;

  int64_t waited_us(int64_t now_us) const {
    return unread_ ? 0 : std::max<int64_t>(0, now_us - std::max(since_us_, dry_us_));
  }

  int64_t left_us_ = 0, since_us_ = 0;  // the time left at since_us_
  int64_t dry_us_ = 0;                  // when the listener has played everything
  bool unread_ = false, never_ = true;
  Counted counted_ = Counted::silence;
};

// For a request that arrives now. A stream's own timeout also applies to readers that are faster than the
// sound. The engine's default timeout, which nobody asked for, never cuts off a listener that gets its sound
// in real time.
inline RequestDeadline deadline_of(const EngineConfig& config, const SpeechRequest& request, int64_t now_us) {
  constexpr int64_t kLongest = int64_t{1}
                               << 50;  // microseconds; sums with the clock's stay far from overflow
  const bool whole = request.delivery == Delivery::whole;
  if (request.timeout.count() > 0)
    return {now_us, std::min<int64_t>(request.timeout.count(), kLongest / 1000) * 1000,
            whole ? Counted::everything : Counted::waiting};
  return {now_us, int64_t{config.request_timeout_s} * 1'000'000,
          whole ? Counted::everything : Counted::silence};
}

}  // namespace shoal::runtime
