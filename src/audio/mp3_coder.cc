// MPEG layer III by LAME: mono, constant bitrate.
#include <algorithm>
#include <array>
#include <lame/lame.h>

#include "audio/coder.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

// The three generations of the format: their sample rates, the bitrates they can carry and our default.
struct Generation {
  std::array<int, 3> sample_rates_hz;
  int min_kbps, max_kbps, default_kbps;
};
constexpr std::array<Generation, 3> kGenerations = {{{{32000, 44100, 48000}, 32, 320, 96},
                                                     {{16000, 22050, 24000}, 8, 160, 64},
                                                     {{8000, 11025, 12000}, 8, 64, 32}}};

const Generation& generation_of(int sample_rate_hz) {
  for (const Generation& generation : kGenerations)
    for (const int rate : generation.sample_rates_hz)
      if (rate == sample_rate_hz) return generation;
  fail(ErrorCode::invalid_argument,
       "mp3 sample rate: expected 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 or 48000 Hz, got ",
       sample_rate_hz);
}

int bitrate_kbps(const EncoderOptions& options) {
  const Generation& generation = generation_of(options.sample_rate_hz);
  if (options.bitrate_bps == 0) return generation.default_kbps;
  if (options.bitrate_bps < generation.min_kbps * 1000 || options.bitrate_bps > generation.max_kbps * 1000)
    fail(ErrorCode::invalid_argument, "mp3 bitrate at ", options.sample_rate_hz, " Hz: expected ",
         generation.min_kbps * 1000, " to ", generation.max_kbps * 1000, " bit/s, got ", options.bitrate_bps);
  return options.bitrate_bps / 1000;
}

struct CloseLame {
  void operator()(lame_t encoder) const { lame_close(encoder); }
};

class Mp3Coder final : public Coder {
 public:
  explicit Mp3Coder(const EncoderOptions& options)
      : encoder_(lame_init()), has_tag_(options.rewritable_header) {
    lame_t encoder = encoder_.get();
    if (!encoder) fail(ErrorCode::resource_exhausted, "mp3: no memory for an encoder");
    lame_set_errorf(encoder, nullptr);  // a library prints nothing
    lame_set_msgf(encoder, nullptr);
    lame_set_debugf(encoder, nullptr);
    lame_set_num_channels(encoder, 1);
    lame_set_mode(encoder, MONO);
    lame_set_in_samplerate(encoder, options.sample_rate_hz);
    lame_set_out_samplerate(encoder, options.sample_rate_hz);  // else LAME may halve it at low bitrates
    lame_set_brate(encoder, bitrate_kbps(options));
    lame_set_write_id3tag_automatic(encoder, 0);
    // The first frame of a file is LAME's table of true length, delay and padding; a stream cannot have it.
    lame_set_bWriteVbrTag(encoder, has_tag_ ? 1 : 0);
    if (lame_init_params(encoder) != 0) fail(ErrorCode::internal, "mp3: LAME refused its settings");
  }

  void push(std::span<const int16_t> samples, Bytes& out) override {
    // LAME takes a mutable pointer but only reads; the right channel of a mono encoder is ignored.
    std::array<int16_t, kMaxBlock> left;
    CHECK(samples.size() <= left.size(), "block of ", samples.size());
    std::copy(samples.begin(), samples.end(), left.begin());
    const int length =
        lame_encode_buffer(encoder_.get(), left.data(), left.data(), static_cast<int>(samples.size()),
                           coded_.data(), static_cast<int>(coded_.size()));
    take(length, out);
  }

  void finish(Bytes& out) override {
    take(lame_encode_flush(encoder_.get(), coded_.data(), static_cast<int>(coded_.size())), out);
  }

  Bytes final_header() const override {
    if (!has_tag_) return {};
    Bytes frame(lame_get_lametag_frame(encoder_.get(), nullptr, 0));
    const size_t length =
        lame_get_lametag_frame(encoder_.get(), reinterpret_cast<unsigned char*>(frame.data()), frame.size());
    CHECK(length == frame.size(), "tag of ", length, " bytes, expected ", frame.size());
    return frame;
  }

 private:
  void take(int length, Bytes& out) const {
    if (length < 0) fail(ErrorCode::internal, "mp3: LAME failed with code ", length);
    append(out, std::as_bytes(std::span(coded_)).first(static_cast<size_t>(length)));
  }

  std::unique_ptr<lame_global_flags, CloseLame> encoder_;
  bool has_tag_;
  // LAME's own bound for one call: 1.25 bytes per sample and 7200.
  std::array<unsigned char, kMaxBlock * 5 / 4 + 7200> coded_;
};

}  // namespace

std::unique_ptr<Coder> make_mp3_coder(const EncoderOptions& options) {
  return std::make_unique<Mp3Coder>(options);
}

}  // namespace shoal::audio
