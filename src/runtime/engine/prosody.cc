#include "runtime/engine/prosody.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"

namespace shoal::runtime {
namespace {

constexpr float kLoudest = 10;

}  // namespace

void check_prosody(const SpeechRequest& request) {
  if (!(request.speed >= audio::kLeastSpeed && request.speed <= audio::kMostSpeed))
    fail(ErrorCode::invalid_argument, "speed: expected ", audio::kLeastSpeed, " to ", audio::kMostSpeed,
         ", got ", request.speed);
  if (!(request.volume >= 0 && request.volume <= kLoudest))
    fail(ErrorCode::invalid_argument, "volume: expected 0 to ", kLoudest, ", got ", request.volume);
}

void change_volume(std::span<float> samples, float volume) {
  if (volume == 1) return;
  for (float& sample : samples) sample = std::clamp(sample * volume, -1.0f, 1.0f);
}

Prosody::Prosody(int sample_rate_hz, double speed, float volume)
    : stretch_(sample_rate_hz, speed), volume_(volume) {}

void Prosody::add(std::span<const float> made) {
  if (std::exchange(broken_, true)) throw std::bad_alloc();
  const size_t first = sound_.size();
  stretch_.push(made, sound_);
  change(first);
}

void Prosody::add_rest() {
  if (std::exchange(broken_, true)) throw std::bad_alloc();
  const size_t first = sound_.size();
  stretch_.finish(sound_);
  change(first);
}

void Prosody::change(size_t first) {
  change_volume(std::span(sound_).subspan(first), volume_);
  broken_ = false;
}

}  // namespace shoal::runtime
