// What a request changes about the sound that its model has made: how fast it is, and how loud.
#pragma once

#include <span>
#include <vector>

#include "audio/time_stretch.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// Throws Error(invalid_argument): speed, volume.
void check_prosody(const SpeechRequest& request);

// Multiplies; what goes beyond full scale is clipped to [-1, 1]. A volume of 1 changes nothing, bit for bit.
void change_volume(std::span<float> samples, float volume);

// For models that know no speed of their own. One thread at a time.
class Prosody {
 public:
  // Throws as audio::TimeStretch.
  Prosody(int sample_rate_hz, double speed, float volume);

  // Appends to sound() what `made` becomes. Throws std::bad_alloc, and then does nothing else any more:
  // samples are missing.
  void add(std::span<const float> made);
  // Appends what was waiting for more, once.
  void add_rest();

  // What was added since the last drop().
  std::span<const float> sound() const { return sound_; }
  void drop() { sound_.clear(); }

 private:
  void change(size_t first);

  audio::TimeStretch stretch_;
  const float volume_;
  std::vector<float> sound_;
  bool broken_ = false;
};

}  // namespace shoal::runtime
