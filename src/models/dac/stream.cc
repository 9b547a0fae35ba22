#include "models/dac/stream.h"

#include <utility>

#include "models/dac/codec.h"
#include "models/dac/decoder.h"

namespace shoal::dac {
namespace {

const StateLayout& decoding_layout(const Decoder* decoder) {
  if (!decoder) fail(ErrorCode::invalid_argument, "codec: it was loaded without its decoder");
  return decoder->layout();
}

}  // namespace

CodecStatePool::CodecStatePool(const Codec& codec, int max_streams)
    : codec_(&codec),
      state_(decoding_layout(codec.decoder_.get()), max_streams, codec.dtype_, codec.device_) {}

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

void CodecStream::reset() {
  pool_->state_.clear(slot_);
  frames_done_ = 0;
}

}  // namespace shoal::dac
