// Ogg Opus by libopusenc: packets of 20 ms; in a stream each has its own Ogg page.
#include <algorithm>
#include <opus/opusenc.h>

#include "audio/coder.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

constexpr int kDefaultOpusBitrate = 64000;
constexpr int kMinOpusBitrate = 6000, kMaxOpusBitrate = 256000;  // the codec's range for one channel
constexpr int kPacketSamples48k = 960;                           // 20 ms
constexpr int kSerial = 0x53484F41;  // any constant: the same samples give the same bytes

struct DestroyEncoder {
  void operator()(OggOpusEnc* encoder) const { ope_encoder_destroy(encoder); }
};
struct DestroyComments {
  void operator()(OggOpusComments* comments) const { ope_comments_destroy(comments); }
};

void check(int status) {
  if (status != OPE_OK) fail(ErrorCode::internal, "opus: ", ope_strerror(status));
}

class OpusCoder final : public Coder {
 public:
  OpusCoder(int sample_rate_hz, int bitrate_bps, bool is_stream)
      : max_piece_(static_cast<size_t>(sample_rate_hz / 200)) {
    const std::unique_ptr<OggOpusComments, DestroyComments> comments(ope_comments_create());
    int status = OPE_ALLOC_FAIL;
    if (comments) encoder_.reset(ope_encoder_create_pull(comments.get(), sample_rate_hz, 1, 0, &status));
    check(status);
    check(ope_encoder_ctl(encoder_.get(), OPUS_SET_BITRATE(bitrate_bps)));
    check(ope_encoder_ctl(encoder_.get(), OPE_SET_SERIALNO(kSerial)));
    // The library's default holds sound back for two seconds.
    check(ope_encoder_ctl(encoder_.get(), OPE_SET_DECISION_DELAY(0)));
    // A page costs 28 bytes, 11 kbit/s when every packet has one: a file keeps the default of a page a
    // second. 0 would never end a page.
    if (is_stream) check(ope_encoder_ctl(encoder_.get(), OPE_SET_MUXING_DELAY(kPacketSamples48k)));
  }

  void push(std::span<const int16_t> samples, Bytes& out) override {
    while (!samples.empty()) {
      const auto piece = samples.first(std::min(samples.size(), max_piece_));
      check(ope_encoder_write(encoder_.get(), piece.data(), static_cast<int>(piece.size())));
      samples = samples.subspan(piece.size());
      started_ = true;
    }
    take_pages(out);
  }

  void finish(Bytes& out) override {
    // The library aborts the process when a stream ends without a sample: such a stream gets a silent one.
    const int16_t silence = 0;
    if (!started_) push(std::span(&silence, 1), out);
    check(ope_encoder_drain(encoder_.get()));
    take_pages(out);
  }

 private:
  void take_pages(Bytes& out) {
    unsigned char* page = nullptr;
    opus_int32 length = 0;
    while (ope_encoder_get_page(encoder_.get(), &page, &length, /*flush=*/0) == 1)
      append(out, std::as_bytes(std::span(page, static_cast<size_t>(length))));
  }

  std::unique_ptr<OggOpusEnc, DestroyEncoder> encoder_;
  // 5 ms. The coded bytes depend on how samples are cut once a piece reaches about a packet; below they do
  // not.
  size_t max_piece_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<Coder> make_opus_coder(const EncoderOptions& options) {
  const int bitrate = options.bitrate_bps == 0 ? kDefaultOpusBitrate : options.bitrate_bps;
  if (bitrate < kMinOpusBitrate || bitrate > kMaxOpusBitrate)
    fail(ErrorCode::invalid_argument, "opus bitrate: expected ", kMinOpusBitrate, " to ", kMaxOpusBitrate,
         " bit/s, got ", bitrate);
  return std::make_unique<OpusCoder>(options.sample_rate_hz, bitrate, !options.rewritable_header);
}

}  // namespace shoal::audio
