// Another sample rate for an answer, while it is being made. (Reference clips: resample.h.)
#pragma once

#include <memory>
#include <span>
#include <vector>

struct soxr;

namespace shoal::audio {

// By libsoxr in its high quality (20 bit). Samples come out as soon as its filter has seen what follows: 37
// ms of sound later from 16 to 24 kHz, 39 ms from 44.1 to 24 kHz, at most 120 ms (to 8 kHz). Time is kept:
// what went in at t comes out at t. The result does not depend on how the samples are cut.
class StreamResampler {
 public:
  // Throws Error(invalid_argument) for rates outside 4000 to 192000 Hz.
  StreamResampler(int from_hz, int to_hz);

  // Appends what `in` completes.
  void push(std::span<const float> in, std::vector<float>& out);
  // Appends the rest, once: then in all as many samples as the length calls for, rounded.
  void finish(std::vector<float>& out);

 private:
  struct Delete {
    void operator()(soxr* state) const;
  };
  double ratio_;
  std::unique_ptr<soxr, Delete> state_;
};

}  // namespace shoal::audio
