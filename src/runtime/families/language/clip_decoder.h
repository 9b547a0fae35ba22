// Codes that a caller brings, to sound.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/dac/codec.h"
#include "runtime/families/language/clip_work.h"

namespace shoal::runtime {

// Thread-safe; one clip after the other.
class ClipDecoder {
 public:
  // Of a pass at most. A GPU's workspace grows with it: of S1-mini's sizes to 93 MB, as much as clips take.
  static constexpr int64_t kFramesAtATime = 32;

  // Both must outlive it.
  ClipDecoder(const dac::Codec& codec, ClipWork& work) : codec_(codec), work_(work) {}

  // codes: [frames, num_codebooks]  -> samples at the codec's rate. Throws Error: invalid_argument,
  // too_large, and the first time resource_exhausted.
  std::vector<float> decode(const std::vector<int32_t>& codes);

  // What it takes of the device's memory, besides the workspace.
  static int64_t bytes(const dac::Codec& codec) { return codec.stream_bytes() + codec.pass_bytes(1); }

 private:
  const dac::Codec& codec_;
  ClipWork& work_;
  std::optional<dac::CodecStatePool> pool_;  // of one stream; in work_ alone
};

}  // namespace shoal::runtime
