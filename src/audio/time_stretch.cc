#include "audio/time_stretch.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

// Some versions lack C++ guards, so it is included as C.
extern "C" {
#include <sonic.h>
}

#include "audio/rates.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

constexpr float kFullScale = 32767;

void check_worked(int worked) {
  if (!worked) throw std::bad_alloc();
}

}  // namespace

void TimeStretch::Delete::operator()(sonicStreamStruct* state) const { sonicDestroyStream(state); }

TimeStretch::TimeStretch(int sample_rate_hz, double speed) {
  check_rate(sample_rate_hz);
  if (!(speed >= kLeastSpeed && speed <= kMostSpeed))
    fail(ErrorCode::invalid_argument, "speed: expected ", kLeastSpeed, " to ", kMostSpeed, ", got ", speed);
  if (speed == 1) return;
  state_.reset(sonicCreateStream(sample_rate_hz, 1));
  if (!state_) throw std::bad_alloc();
  sonicSetSpeed(state_.get(), static_cast<float>(speed));
}

void TimeStretch::push(std::span<const float> in, std::vector<float>& out) {
  if (!state_) {
    out.insert(out.end(), in.begin(), in.end());
    return;
  }
  for (const float sample : in) {
    block_[waiting_++] = static_cast<short>(std::lrint(std::clamp(sample, -1.0f, 1.0f) * kFullScale));
    if (waiting_ < kBlock) continue;
    write();
    take(out);
  }
}

void TimeStretch::finish(std::vector<float>& out) {
  if (!state_) return;
  write();
  check_worked(sonicFlushStream(state_.get()));
  take(out);
}

void TimeStretch::write() {
  check_worked(
      sonicWriteShortToStream(state_.get(), block_.data(), static_cast<int>(std::exchange(waiting_, 0))));
}

void TimeStretch::take(std::vector<float>& out) {
  std::array<short, 1024> made;
  while (const int count = sonicReadShortFromStream(state_.get(), made.data(), made.size())) {
    for (int i = 0; i < count; ++i)
      out.push_back(static_cast<float>(made[static_cast<size_t>(i)]) / kFullScale);
  }
}

}  // namespace shoal::audio
