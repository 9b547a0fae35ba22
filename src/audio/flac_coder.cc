// FLAC by libFLAC: 16-bit, blocks of 576 samples.
#include <FLAC/stream_encoder.h>
#include <algorithm>
#include <array>
#include <utility>

#include "audio/coder.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

// 13 ms at 44.1 kHz; the smallest block of the format's standard sizes that still compresses speech well.
constexpr unsigned kBlockSamples = 576;
constexpr unsigned kCompressionLevel = 5;  // libFLAC's default
// "fLaC", the 4-byte block header and the STREAMINFO block open every file.
constexpr size_t kStreamInfoOffset = 8, kStreamInfoBytes = 34;

struct DeleteEncoder {
  void operator()(FLAC__StreamEncoder* encoder) const { FLAC__stream_encoder_delete(encoder); }
};

class FlacCoder final : public Coder {
 public:
  explicit FlacCoder(const EncoderOptions& options)
      : rewritable_(options.rewritable_header), encoder_(FLAC__stream_encoder_new()) {
    if (!encoder_) fail(ErrorCode::resource_exhausted, "flac: no memory for an encoder");
    const unsigned rate = static_cast<unsigned>(options.sample_rate_hz);
    FLAC__StreamEncoder* encoder = encoder_.get();
    const bool accepted =
        FLAC__stream_encoder_set_channels(encoder, 1) &&
        FLAC__stream_encoder_set_bits_per_sample(encoder, 16) &&
        FLAC__stream_encoder_set_sample_rate(encoder, rate) &&
        FLAC__stream_encoder_set_streamable_subset(encoder, FLAC__format_sample_rate_is_subset(rate)) &&
        FLAC__stream_encoder_set_compression_level(encoder, kCompressionLevel) &&
        FLAC__stream_encoder_set_blocksize(encoder, kBlockSamples);
    CHECK(accepted, "libFLAC refused its settings");
    const auto status =
        FLAC__stream_encoder_init_stream(encoder, on_bytes, nullptr, nullptr, on_stream_info, this);
    if (status != FLAC__STREAM_ENCODER_INIT_STATUS_OK)
      fail(ErrorCode::internal, "flac: ", FLAC__StreamEncoderInitStatusString[status]);
    CHECK(collected_.size() >= kStreamInfoOffset + kStreamInfoBytes, "libFLAC wrote no header");
    header_.assign(collected_.begin(), collected_.begin() + kStreamInfoOffset + kStreamInfoBytes);
  }

  void push(std::span<const int16_t> samples, Bytes& out) override {
    std::array<FLAC__int32, kMaxBlock> wide;
    CHECK(samples.size() <= wide.size(), "block of ", samples.size());
    std::copy(samples.begin(), samples.end(), wide.begin());
    check(FLAC__stream_encoder_process_interleaved(encoder_.get(), wide.data(),
                                                   static_cast<unsigned>(samples.size())));
    hand_over(out);
  }

  void finish(Bytes& out) override {
    check(FLAC__stream_encoder_finish(encoder_.get()));
    hand_over(out);
  }

  Bytes final_header() const override { return rewritable_ ? header_ : Bytes{}; }

 private:
  static FLAC__StreamEncoderWriteStatus on_bytes(const FLAC__StreamEncoder*, const FLAC__byte bytes[],
                                                 size_t count, uint32_t, uint32_t, void* self) {
    try {
      append(static_cast<FlacCoder*>(self)->collected_, std::as_bytes(std::span(bytes, count)));
      return FLAC__STREAM_ENCODER_WRITE_STATUS_OK;
    } catch (...) {  // out of memory; an exception must not cross libFLAC
      return FLAC__STREAM_ENCODER_WRITE_STATUS_FATAL_ERROR;
    }
  }

  // Called once by finish with what could not be known at the start. RFC 9639 section 8.2: frame sizes at
  // bytes 4 and 7 (24 bits), the sample count in the low 36 bits up to byte 17, MD5 from byte 18 on.
  static void on_stream_info(const FLAC__StreamEncoder*, const FLAC__StreamMetadata* metadata, void* self) {
    const FLAC__StreamMetadata_StreamInfo& info = metadata->data.stream_info;
    std::byte* block = static_cast<FlacCoder*>(self)->header_.data() + kStreamInfoOffset;
    const auto put = [&](size_t last, size_t count, uint64_t value) {  // big-endian, ending at byte `last`
      for (size_t i = 0; i < count; ++i) block[last - i] = static_cast<std::byte>((value >> (8 * i)) & 0xFF);
    };
    put(6, 3, info.min_framesize);
    put(9, 3, info.max_framesize);
    put(17, 4, info.total_samples);
    const uint64_t high = std::min<uint64_t>(info.total_samples >> 32, 0xF);
    block[13] = (block[13] & std::byte{0xF0}) | static_cast<std::byte>(high);
    std::copy_n(std::as_bytes(std::span(info.md5sum)).begin(), sizeof(info.md5sum), block + 18);
  }

  void check(FLAC__bool done) const {
    if (!done)
      fail(ErrorCode::internal, "flac: ", FLAC__stream_encoder_get_resolved_state_string(encoder_.get()));
  }

  void hand_over(Bytes& out) {
    append(out, collected_);
    collected_.clear();
  }

  bool rewritable_;
  Bytes header_;     // of the file, up to the end of STREAMINFO
  Bytes collected_;  // by on_bytes
  // Last, so that it goes first: deleting an unfinished encoder calls back.
  std::unique_ptr<FLAC__StreamEncoder, DeleteEncoder> encoder_;
};

}  // namespace

std::unique_ptr<Coder> make_flac_coder(const EncoderOptions& options) {
  return std::make_unique<FlacCoder>(options);
}

}  // namespace shoal::audio
