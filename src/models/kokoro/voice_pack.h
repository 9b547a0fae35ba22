// The styles of a voice, one for each length of a phoneme string (as the official pipeline does).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/kokoro/config.h"

namespace shoal::kokoro {

class VoicePack {
 public:
  static constexpr int64_t kRows = kMostPhonemes;
  static constexpr int64_t kColumns = 256;  // the decoder's half, then the predictor's

  // values: kRows * kColumns. Throws Error(corrupt_file) when one is not finite; `where` starts the message.
  VoicePack(std::vector<float> values, const std::string& where);
  // Random styles with the magnitudes of published voices, for benchmarks and tests.
  static VoicePack random(uint64_t seed);

  std::span<const float> values() const { return values_; }
  // The style for a phoneme string of this many code points, including unknown ones but not pads: [kColumns].
  // Throws Error(invalid_argument) outside 1 to kRows.
  std::span<const float> row(int64_t code_points) const;

 private:
  std::vector<float> values_;
};

// The format of a voice file, recognised by its content; file names mean little ("voices-v1.0.bin" is an
// npz).
enum class VoiceFormat : uint8_t {
  tensor,  // one torch tensor [510, 1, 256] or [510, 256]: NAME.pt
  raw,     // 510 * 256 little-endian floats: NAME.bin
  npz,     // numpy arrays of the tensor's shapes, by name
};

struct VoicesFile {
  VoiceFormat format = VoiceFormat::raw;
  std::vector<std::string> names;  // of an npz; a file of one voice does not contain its name
};

// Reads headers only. Throws Error: not_found, io, corrupt_file, unsupported, too_large.
VoicesFile inspect_voices(const std::string& path);
// `name`: which of an npz; otherwise unused. Throws Error as above, and not_found when the npz lacks it.
VoicePack read_voice(const std::string& path, VoiceFormat format, std::string_view name);

}  // namespace shoal::kokoro
