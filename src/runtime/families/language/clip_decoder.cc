#include "runtime/families/language/clip_decoder.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace shoal::runtime {

std::vector<float> ClipDecoder::decode(const std::vector<int32_t>& codes) {
  const int64_t width = codec_.config().num_codebooks(), hop = codec_.config().samples_per_frame();
  const int64_t frames = std::ssize(codes) / width;
  if (std::ssize(codes) % width != 0)
    fail(ErrorCode::invalid_argument, "codes: expected a multiple of ", width, " values, got ", codes.size());
  if (frames > dac::kMaxPositions)
    fail(ErrorCode::too_large, "codes: a clip may have ", dac::kMaxPositions, " frames, this one has ",
         frames);
  std::vector<float> sound(static_cast<size_t>(frames * hop));
  work_.run([&](ops::Context& ctx) {
    if (!pool_) pool_.emplace(codec_, ctx, 1);
    dac::CodecStream stream(*pool_);
    dac::CodecStream* const streams[] = {&stream};
    for (int64_t begin = 0; begin < frames; begin += kFramesAtATime) {
      const int64_t count = std::min(frames - begin, kFramesAtATime);
      const int32_t offsets[] = {0, static_cast<int32_t>(count)};
      const auto part = [&](auto whole, int64_t size) {
        return whole.subspan(static_cast<size_t>(begin * size), static_cast<size_t>(count * size));
      };
      codec_.decode_streams(ctx, streams, {offsets}, part(std::span(codes), width),
                            part(std::span(sound), hop));
    }
  });
  return sound;
}

}  // namespace shoal::runtime
