// A listener that plays a stream while receiving it.
#pragma once

#include <cstdint>

namespace shoal::bench {

// Playback begins with the first piece, stops when all sound has been played, and continues with the next
// piece. Times in microseconds of one clock.
class Listener {
 public:
  explicit Listener(int sample_rate_hz) : sample_rate_hz_(sample_rate_hz) {}

  // A piece arrived: at_us does not fall from call to call.
  void hear(int64_t at_us, int64_t samples) {
    if (samples_ == 0) {
      end_us_ = at_us;
    } else if (at_us > end_us_) {
      ++underruns_;
      dry_us_ += at_us - end_us_;
      end_us_ = at_us;
    }
    samples_ += samples;
    // From the sum, so that rounding does not add up over many pieces.
    const int64_t played_us = samples_ * 1'000'000 / sample_rate_hz_;
    end_us_ += played_us - counted_us_;
    counted_us_ = played_us;
  }

  int64_t samples() const { return samples_; }
  int64_t runs_dry_at_us() const { return end_us_; }  // unless more arrives; once something was heard
  int64_t underruns() const { return underruns_; }
  int64_t dry_us() const { return dry_us_; }  // silence between first and last sample

 private:
  int sample_rate_hz_;
  int64_t samples_ = 0, counted_us_ = 0, end_us_ = 0, underruns_ = 0, dry_us_ = 0;
};

}  // namespace shoal::bench
