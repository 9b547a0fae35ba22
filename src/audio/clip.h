// Reading reference audio: any common container, from a file or from memory, into one channel of floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::audio {

// Mono sound. Samples of integer files lie in [-1, 1); float and lossy files may peak above 1, never
// above 16. Always finite.
struct Clip {
  int sample_rate_hz = 0;
  std::vector<float> samples;

  double seconds() const {
    return sample_rate_hz > 0 ? static_cast<double>(samples.size()) / sample_rate_hz : 0.0;
  }
};

// The limits of a clip. The decoded samples stay below max_seconds * sample_rate, whatever the file claims
// about its length.
struct ClipLimits {
  double max_seconds = 120;
  int64_t max_file_bytes = int64_t{64} << 20;
  int max_channels = 8;
  int min_sample_rate_hz = 4000;
  int max_sample_rate_hz = 384000;
};

// Decodes wav (also RF64, W64), flac, ogg (Vorbis, Opus), mp3, aiff and au at their own rate, channels
// averaged. `name` starts every message ("reference", a path).
// Throws Error: corrupt_file (not audio, damaged, empty), unsupported (AAC/M4A), too_large (over the limits),
// invalid_argument (a sample rate or channel count out of range, no samples, a sample not finite or over 16).
Clip decode_clip(std::span<const std::byte> bytes, std::string_view name, const ClipLimits& limits = {});

// The same from a regular file. Throws also not_found and io.
Clip read_clip(const std::string& path, const ClipLimits& limits = {});

// True when no sample exceeds 0.001 in magnitude (peak below -60 dBFS), which includes no samples at all:
// quieter than any usable recording of a voice, louder than the dither of an empty one.
bool is_silent(std::span<const float> samples);

}  // namespace shoal::audio
