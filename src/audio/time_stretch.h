// Speech that is faster or slower at the same pitch, while it is being made.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

struct sonicStreamStruct;

namespace shoal::audio {

constexpr double kLeastSpeed = 0.25, kMostSpeed = 4;

// By libsonic, which repeats or drops pitch periods of the voice. Samples are mono floats; the output has 16
// bits, clipped to [-1, 1]. It is delayed by up to 31 ms of input, and does not depend on how the samples are
// cut.
class TimeStretch {
 public:
  // speed: 2 is twice as fast; 1 gives back the very samples. Throws Error(invalid_argument) for rates
  // outside 4000 to 192000 Hz and speeds outside kLeastSpeed to kMostSpeed, std::bad_alloc.
  TimeStretch(int sample_rate_hz, double speed);

  // Appends the output that `in` completes. After std::bad_alloc nothing more may be pushed.
  void push(std::span<const float> in, std::vector<float>& out);
  // Appends the rest, once: the total length is that of the input divided by the speed, within 31 ms; at
  // speeds below 0.5 up to 2 % longer, because repeats are whole samples.
  void finish(std::vector<float>& out);

 private:
  struct Delete {
    void operator()(sonicStreamStruct* state) const;
  };
  void write();
  void take(std::vector<float>& out);

  // Samples that wait until there are enough for one call. Calls always have the same size, so the result
  // cannot depend on how samples arrive. A codec's frames hold a whole number of such blocks: none of their
  // samples wait.
  static constexpr size_t kBlock = 256;
  std::array<short, kBlock> block_{};
  size_t waiting_ = 0;
  std::unique_ptr<sonicStreamStruct, Delete> state_;  // null: speed 1
};

}  // namespace shoal::audio
