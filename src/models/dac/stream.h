// The state that decoding carries from one piece of an utterance to the next.
#pragma once

#include <cstdint>
#include <memory>

#include "models/dac/decode_memory.h"
#include "models/dac/state.h"

namespace shoal::dac {

class Codec;

// Memory for the decoding states of at most `max_streams` utterances of one codec. Streams of one pool can be
// decoded together, by one thread at a time; leasing and returning slots is thread-safe.
class CodecStatePool {
 public:
  // The codec must outlive the pool and must have been loaded with its decoder; its streams are decoded on
  // the context's device. All memory is allocated here: bytes(). Throws Error: invalid_argument (max_streams
  // < 1), resource_exhausted.
  CodecStatePool(const Codec& codec, ops::Context& ctx, int max_streams);

  const Codec& codec() const { return *codec_; }
  int max_streams() const { return state_.slots(); }
  int streams_open() const { return state_.leased(); }
  int64_t bytes_per_stream() const { return state_.bytes_per_slot(); }
  int64_t bytes() const { return state_.bytes() + memory_.bytes(); }

 private:
  friend class CodecStream;
  friend class Codec;
  const Codec* codec_;
  StateSlots state_;
  DecodeMemory memory_;
};

// One utterance being decoded: a lease of one slot of a pool, which must outlive it. Move-only. A stream is
// used by one thread at a time.
class CodecStream {
 public:
  // At the start of an utterance. Throws Error(resource_exhausted) when every slot is leased.
  explicit CodecStream(CodecStatePool& pool);
  CodecStream(CodecStream&& other) noexcept;
  CodecStream& operator=(CodecStream&& other) noexcept;
  ~CodecStream();

  int64_t frames_done() const { return frames_done_; }
  int64_t bytes() const;  // of its slot
  // Back to the start of an utterance. Needed after a decode_streams call that threw.
  void reset() { frames_done_ = 0; }  // the slot is cleared before its first frame

 private:
  friend class Codec;
  CodecStatePool* pool_ = nullptr;
  int slot_ = -1;
  int64_t frames_done_ = 0;
};

}  // namespace shoal::dac
