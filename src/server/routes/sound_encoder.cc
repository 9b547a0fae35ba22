#include "server/routes/sound_encoder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace shoal::server {
namespace {

// Seconds of sound whose encoding takes about a millisecond; measured per 10 s: opus 57 ms, mp3 33, aac 25,
// flac 7, wav, pcm and G.711 under 1.
double seconds_per_ms(audio::Format format) {
  switch (format) {
    case audio::Format::wav:
    case audio::Format::pcm_s16le:
    case audio::Format::ulaw:
    case audio::Format::alaw:
      return 10;
    case audio::Format::flac:
      return 1;
    case audio::Format::opus:
    case audio::Format::mp3:
    case audio::Format::aac:
      return 0.2;
  }
  return 0;
}

}  // namespace

SoundEncoder::SoundEncoder(audio::Format format, const audio::EncoderOptions& options, int from_hz)
    : format_(format), from_hz_(from_hz) {
  if (options.sample_rate_hz != from_hz) resampler_.emplace(from_hz, options.sample_rate_hz);
  encoder_ = audio::make_encoder(format, options, [this](std::span<const std::byte> bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
}

std::string SoundEncoder::encode(std::span<const float> samples) {
  if (!resampler_) {
    encoder_->write(samples);
    return take();
  }
  resampled_.clear();
  resampler_->push(samples, resampled_);
  encoder_->write(resampled_);
  return take();
}

std::string SoundEncoder::finish() {
  if (resampler_) {
    resampled_.clear();
    resampler_->finish(resampled_);
    encoder_->write(resampled_);
  }
  encoder_->finish();
  return take();
}

void SoundEncoder::complete_header(std::string& file) const {
  const std::vector<std::byte> header = encoder_->final_header();
  CHECK(header.size() <= file.size(), "header of ", header.size(), " bytes, file of ", file.size());
  std::transform(header.begin(), header.end(), file.begin(),
                 [](std::byte byte) { return static_cast<char>(byte); });
}

bool SoundEncoder::is_long(size_t samples) const {
  const double limit_s = std::min(seconds_per_ms(format_), resampler_ ? 2.0 : 10.0);
  return static_cast<double>(samples) > limit_s * from_hz_;
}

}  // namespace shoal::server
