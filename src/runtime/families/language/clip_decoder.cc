#include "runtime/families/language/clip_decoder.h"

#include <algorithm>
#include <span>

namespace shoal::runtime {

ClipDecoder::ClipDecoder(const dac::Codec& codec, ClipWork& work) : codec_(codec), work_(work) {
  work_.run([&](ops::Context& ctx) { pool_.emplace(codec_, ctx, 1); });
}

std::vector<float> ClipDecoder::decode(const std::vector<int32_t>& codes) {
  const int64_t frames = codec_.frames_in(codes);
  const auto width = static_cast<size_t>(codec_.config().num_codebooks()),
             hop = static_cast<size_t>(codec_.config().samples_per_frame());
  std::vector<float> sound(static_cast<size_t>(frames) * hop);
  std::span<const int32_t> codes_left = codes;
  std::span<float> sound_left = sound;
  const std::lock_guard lock(mutex_);
  dac::CodecStream stream(*pool_);
  dac::CodecStream* const streams[] = {&stream};
  for (int64_t left = frames; left > 0; left -= kFramesAtATime) {
    const auto count = static_cast<size_t>(std::min(left, kFramesAtATime));
    const int32_t offsets[] = {0, static_cast<int32_t>(count)};
    work_.run([&](ops::Context& ctx) {
      codec_.decode_streams(ctx, streams, {offsets}, codes_left.first(count * width),
                            sound_left.first(count * hop));
    });
    codes_left = codes_left.subspan(count * width), sound_left = sound_left.subspan(count * hop);
  }
  return sound;
}

}  // namespace shoal::runtime
