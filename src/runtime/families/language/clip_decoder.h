// Codes that a caller brings, to sound.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "models/dac/codec.h"
#include "models/dac/stream.h"
#include "runtime/families/language/clip_work.h"

namespace shoal::runtime {

// Thread-safe: callers take turns.
class ClipDecoder {
 public:
  // Decoded at a time; clips to encode need not wait for more. A GPU's workspace grows with it: of S1-mini's
  // sizes to 93 MB, as much as encoding takes.
  static constexpr int64_t kFramesAtATime = 32;

  // Both must outlive it. Throws Error(resource_exhausted).
  ClipDecoder(const dac::Codec& codec, ClipWork& work);

  // codes: [frames, num_codebooks]  -> samples at the codec's rate. Throws Error as dac::Codec::decode.
  std::vector<float> decode(const std::vector<int32_t>& codes);

  // What it takes of the device's memory, besides the workspace.
  static int64_t bytes(const dac::Codec& codec) { return codec.stream_bytes() + codec.pass_bytes(1); }

 private:
  const dac::Codec& codec_;
  ClipWork& work_;
  std::mutex mutex_;                         // of the pool
  std::optional<dac::CodecStatePool> pool_;  // of one stream
};

}  // namespace shoal::runtime
