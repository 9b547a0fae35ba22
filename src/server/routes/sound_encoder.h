// The sound of an answer: at its rate, in its format, piece by piece.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "audio/encoder.h"
#include "audio/stream_resampler.h"

namespace shoal::server {

// Encodes one answer; one call at a time, from any thread.
class SoundEncoder {
 public:
  // Samples come at from_hz; the bytes hold options.sample_rate_hz. Throws Error as make_encoder.
  SoundEncoder(audio::Format format, const audio::EncoderOptions& options, int from_hz);

  std::string encode(std::span<const float> samples);
  std::string finish();
  // After finish(), with options.rewritable_header: overwrites the beginning of `file`, all that encode and
  // finish have returned.
  void complete_header(std::string& file) const;

  // Whether encoding this many samples takes too long (about a millisecond) for a connection's thread.
  bool is_long(size_t samples) const;

 private:
  std::string take() { return std::exchange(bytes_, {}); }

  audio::Format format_;
  int from_hz_;
  std::optional<audio::StreamResampler> resampler_;
  std::vector<float> resampled_;
  std::string bytes_;
  std::unique_ptr<audio::Encoder> encoder_;
};

}  // namespace shoal::server
