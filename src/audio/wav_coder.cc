// RIFF WAVE with 16-bit PCM, and the same samples without a header.
#include <cstring>
#include <string_view>

#include "audio/coder.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

constexpr int kHeaderBytes = 44;
// Size fields of a stream: "until the end". Players, browsers, ffmpeg and libsndfile read to the end of the
// data; some take a zero (the other convention) for an empty file.
constexpr uint32_t kUnknownSize = 0xFFFFFFFF;
// The RIFF size counts the data and 36 bytes of header.
constexpr uint64_t kMaxDataBytes = 0xFFFFFFFF - (kHeaderBytes - 8);

void append_samples(Bytes& out, std::span<const int16_t> samples) {
  out.reserve(out.size() + samples.size_bytes());
  for (const int16_t sample : samples) {
    out.push_back(static_cast<std::byte>(sample & 0xFF));
    out.push_back(static_cast<std::byte>((sample >> 8) & 0xFF));
  }
}

Bytes wav_header(int sample_rate_hz, uint32_t riff_bytes, uint32_t data_bytes) {
  Bytes header(kHeaderBytes);
  const auto put_text = [&](size_t offset, std::string_view text) {
    std::memcpy(header.data() + offset, text.data(), text.size());
  };
  const auto put = [&](size_t offset, size_t count, uint32_t value) {  // little-endian
    for (size_t i = 0; i < count; ++i) header[offset + i] = static_cast<std::byte>((value >> (8 * i)) & 0xFF);
  };
  const uint32_t rate = static_cast<uint32_t>(sample_rate_hz);
  put_text(0, "RIFF");
  put(4, 4, riff_bytes);
  put_text(8, "WAVEfmt ");
  put(16, 4, 16);        // bytes of this chunk
  put(20, 2, 1);         // PCM
  put(22, 2, 1);         // channels
  put(24, 4, rate);      // frames per second
  put(28, 4, rate * 2);  // bytes per second
  put(32, 2, 2);         // bytes per frame
  put(34, 2, 16);        // bits per sample
  put_text(36, "data");
  put(40, 4, data_bytes);
  return header;
}

class WavCoder final : public Coder {
 public:
  explicit WavCoder(const EncoderOptions& options) : options_(options) {}

  void push(std::span<const int16_t> samples, Bytes& out) override {
    start(out);
    data_bytes_ += samples.size_bytes();
    if (options_.rewritable_header && data_bytes_ > kMaxDataBytes)
      fail(ErrorCode::too_large, "wav: more than ", kMaxDataBytes, " bytes of samples do not fit the format");
    append_samples(out, samples);
  }

  void finish(Bytes& out) override { start(out); }

  Bytes final_header() const override {
    if (!options_.rewritable_header) return {};
    const uint32_t data = static_cast<uint32_t>(data_bytes_);
    return wav_header(options_.sample_rate_hz, data + (kHeaderBytes - 8), data);
  }

 private:
  void start(Bytes& out) {
    if (started_) return;
    started_ = true;
    append(out, wav_header(options_.sample_rate_hz, kUnknownSize, kUnknownSize));
  }

  EncoderOptions options_;
  uint64_t data_bytes_ = 0;
  bool started_ = false;
};

class PcmCoder final : public Coder {
 public:
  void push(std::span<const int16_t> samples, Bytes& out) override { append_samples(out, samples); }
  void finish(Bytes&) override {}
};

}  // namespace

std::unique_ptr<Coder> make_wav_coder(const EncoderOptions& options) {
  return std::make_unique<WavCoder>(options);
}
std::unique_ptr<Coder> make_pcm_coder() { return std::make_unique<PcmCoder>(); }

}  // namespace shoal::audio
