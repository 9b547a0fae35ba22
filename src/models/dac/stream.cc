#include "models/dac/stream.h"

#include <utility>

#include "models/dac/codec.h"
#include "models/dac/decoder.h"

namespace shoal::dac {
namespace {

const Decoder& checked(const Decoder* decoder) {
  if (!decoder) fail(ErrorCode::invalid_argument, "codec: it was loaded without its decoder");
  return *decoder;
}

}  // namespace

CodecStatePool::CodecStatePool(const Codec& codec, ops::Context& ctx, int max_streams)
    : codec_(&codec),
      state_(checked(codec.decoder_.get()).layout(), max_streams, codec.dtype(), ctx),
      memory_(ctx, codec.decoder_->sizes(max_streams)) {
  CHECK(ctx.device == codec.device_, "codec streams: the context is of another device than the codec");
}

CodecStream::CodecStream(CodecStatePool& pool) : pool_(&pool), slot_(pool.state_.lease()) {}

CodecStream::CodecStream(CodecStream&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_), frames_done_(other.frames_done_) {}

CodecStream& CodecStream::operator=(CodecStream&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(slot_, other.slot_);
  std::swap(frames_done_, other.frames_done_);
  return *this;
}

CodecStream::~CodecStream() {
  if (pool_) pool_->state_.give_back(slot_);
}

int64_t CodecStream::bytes() const { return pool_->bytes_per_stream(); }

}  // namespace shoal::dac
