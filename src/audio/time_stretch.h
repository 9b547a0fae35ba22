// Speech that is faster or slower at the same pitch, while it is being made.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

struct sonicStreamStruct;

namespace shoal::audio {

constexpr double kLeastSpeed = 0.25, kMostSpeed = 4;

// By libsonic, which repeats or leaves out periods of the voice's pitch. Samples are mono floats; what comes
// out has 16 bits, clipped to [-1, 1]. It comes after up to 31 ms of sound in, and does not depend on how the
// samples are cut.
class TimeStretch {
 public:
  // speed: 2 is twice as fast; 1 gives back the very samples. Throws Error(invalid_argument) for rates
  // outside 4000 to 192000 Hz and speeds outside kLeastSpeed to kMostSpeed, std::bad_alloc.
  TimeStretch(int sample_rate_hz, double speed);

  // Appends what `in` completes. Throws std::bad_alloc; then nothing more may be pushed.
  void push(std::span<const float> in, std::vector<float>& out);
  // Appends the rest, once: in all as long as what came in divided by the speed, give or take 31 ms; at
  // speeds below 0.5 up to 2 % longer, because repeats are whole samples.
  void finish(std::vector<float>& out);

 private:
  struct Delete {
    void operator()(sonicStreamStruct* state) const;
  };
  void write();
  void take(std::vector<float>& out);

  // Samples that wait until there are enough for one call: always as many, so that the result cannot depend
  // on the calls. A codec's frames hold a whole number of such blocks: nothing of them waits.
  static constexpr size_t kBlock = 256;
  std::array<short, kBlock> block_{};
  size_t waiting_ = 0;
  std::unique_ptr<sonicStreamStruct, Delete> state_;  // null: speed 1
};

}  // namespace shoal::audio
