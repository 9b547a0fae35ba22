#include <algorithm>
#include <memory>
#include <optional>

#include "audio/clip.h"
#include "audio/encoder.h"
#include "base/printable.h"
#include "capi/buffer.h"
#include "capi/call.h"

struct shoal_encoder : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::encoder;
  shoal_encoder(shoal::audio::Format format, const shoal::audio::EncoderOptions& options)
      : Handle(kKind), encoder(shoal::audio::make_encoder(format, options, [this](auto bytes) {
          coded.insert(coded.end(), bytes.begin(), bytes.end());
        })) {}
  std::vector<std::byte> coded;  // since the caller last took some
  bool usable = true;            // neither finished nor failed
  std::unique_ptr<shoal::audio::Encoder> encoder;
};

namespace shoal::capi {
namespace {

audio::Format format_called(const char* name) {
  if (const auto format = audio::parse_format(text_of(name, "format"))) return *format;
  fail(ErrorCode::invalid_argument, "format: expected ", audio::list_of_formats(), ", got \"",
       printable(name), "\"");
}

audio::EncoderOptions encoder_options(int32_t sample_rate_hz, int32_t bitrate_bps) {
  return {.sample_rate_hz = sample_rate_hz, .bitrate_bps = bitrate_bps};
}

std::span<const float> samples_of(const float* samples, size_t count) {
  if (!samples && count > 0) fail(ErrorCode::invalid_argument, "samples: expected samples, got NULL");
  return {samples, count};
}

// What `act` makes the encoder give. After it threw, or with `last`, the encoder gives no more.
template <typename Act>
shoal_buffer* coded_by(shoal_encoder& handle, bool last, Act act) {
  if (!handle.usable) fail(ErrorCode::invalid_argument, "encoder: it was finished, or failed before");
  handle.usable = false;
  act(*handle.encoder);
  handle.usable = !last;
  return buffer_of(std::exchange(handle.coded, {}));
}

}  // namespace
}  // namespace shoal::capi

using namespace shoal::capi;

shoal_code shoal_to_pcm16(const float* samples, size_t count, int16_t* pcm, shoal_error* error) {
  return call(error, [&] {
    if (count == 0) return;
    std::ranges::transform(samples_of(samples, count), &output(pcm, "pcm"), shoal::audio::to_s16);
  });
}

shoal_code shoal_encode_sound(const char* format, int32_t sample_rate_hz, int32_t bitrate_bps,
                              const float* samples, size_t count, shoal_buffer** bytes, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(bytes, "bytes");
    out = buffer_of(shoal::audio::encode(format_called(format), encoder_options(sample_rate_hz, bitrate_bps),
                                         samples_of(samples, count)));
  });
}

shoal_code shoal_encoder_new(const char* format, int32_t sample_rate_hz, int32_t bitrate_bps,
                             shoal_encoder** encoder, shoal_error* error) {
  return call(error, [&] {
    shoal_encoder*& out = output(encoder, "encoder");
    out = new shoal_encoder(format_called(format), encoder_options(sample_rate_hz, bitrate_bps));
  });
}

void shoal_encoder_free(shoal_encoder* encoder) { delete encoder; }

shoal_code shoal_encoder_write(shoal_encoder* encoder, const float* samples, size_t count,
                               shoal_buffer** bytes, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(bytes, "bytes");
    out = coded_by(held(encoder, "encoder"), false,
                   [&](auto& into) { into.write(samples_of(samples, count)); });
  });
}

shoal_code shoal_encoder_finish(shoal_encoder* encoder, shoal_buffer** bytes, shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(bytes, "bytes");
    out = coded_by(held(encoder, "encoder"), true, [](auto& into) { into.finish(); });
  });
}

shoal_code shoal_decode_sound(const void* audio, size_t size, shoal_buffer** samples, int32_t* sample_rate_hz,
                              shoal_error* error) {
  return call(error, [&] {
    shoal_buffer*& out = output(samples, "samples");
    if (!audio) shoal::fail(shoal::ErrorCode::invalid_argument, "audio: expected bytes, got NULL");
    shoal::audio::Clip clip =
        shoal::audio::decode_clip({static_cast<const std::byte*>(audio), size}, "audio");
    if (sample_rate_hz) *sample_rate_hz = clip.sample_rate_hz;
    out = buffer_of(std::move(clip.samples));
  });
}
