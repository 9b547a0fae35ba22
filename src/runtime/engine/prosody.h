// Changes the speed and volume of the model's sound, as a request asks.
#pragma once

#include <span>
#include <vector>

#include "audio/time_stretch.h"
#include "shoal/speech_request.h"

namespace shoal::runtime {

// Throws Error(invalid_argument): speed, volume.
void check_prosody(const SpeechRequest& request);

// Scales the samples and clips them to [-1, 1]. A volume of 1 changes nothing, bit for bit.
void change_volume(std::span<float> samples, float volume);

// For models without a speed of their own. Used by one thread at a time.
class Prosody {
 public:
  // Throws as audio::TimeStretch.
  Prosody(int sample_rate_hz, double speed, float volume);

  // Appends the processed `made` to sound(). After std::bad_alloc it appends nothing more, because samples
  // are missing.
  void add(std::span<const float> made);
  // Appends the samples that still waited for more input. Call once.
  void add_rest();

  // The sound added since the last drop().
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
