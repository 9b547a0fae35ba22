#include "audio/encoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "audio/coder.h"
#include "audio/rates.h"
#include "base/error.h"

namespace shoal::audio {
namespace {

struct FormatRow {
  Format format;
  std::string_view name, mime_type;
};
constexpr std::array<FormatRow, 8> kFormats = {{{Format::wav, "wav", "audio/wav"},
                                                {Format::pcm_s16le, "pcm", "audio/pcm"},
                                                {Format::flac, "flac", "audio/flac"},
                                                {Format::opus, "opus", "audio/ogg"},
                                                {Format::mp3, "mp3", "audio/mpeg"},
                                                {Format::aac, "aac", "audio/aac"},
                                                {Format::ulaw, "ulaw", "audio/basic"},
                                                {Format::alaw, "alaw", "audio/x-alaw-basic"}}};

const FormatRow& row_of(Format format) {
  const auto row = std::find_if(kFormats.begin(), kFormats.end(),
                                [&](const FormatRow& candidate) { return candidate.format == format; });
  CHECK(row != kFormats.end(), "format ", static_cast<int>(format));
  return *row;
}

std::unique_ptr<Coder> make_coder(Format format, const EncoderOptions& options) {
  switch (format) {
    case Format::wav:
      return make_wav_coder(options);
    case Format::pcm_s16le:
      return make_pcm_coder();
    case Format::flac:
      return make_flac_coder(options);
    case Format::opus:
      return make_opus_coder(options);
    case Format::mp3:
      return make_mp3_coder(options);
    case Format::aac:
      return make_aac_coder(options);
    case Format::ulaw:
      return make_ulaw_coder(options);
    case Format::alaw:
      return make_alaw_coder(options);
  }
  fail(ErrorCode::internal, "format ", static_cast<int>(format), " has no encoder");
}

}  // namespace

std::optional<Format> parse_format(std::string_view name) {
  for (const FormatRow& row : kFormats)
    if (row.name == name) return row.format;
  return std::nullopt;
}

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const FormatRow& row : kFormats) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

std::string list_of_formats() {
  std::string list;
  for (const FormatRow& row : kFormats) {
    if (&row != kFormats.data()) list += &row == &kFormats.back() ? " or " : ", ";
    list += row.name;
  }
  return list;
}

std::vector<std::string> mime_types() {
  std::vector<std::string> types;
  for (const FormatRow& row : kFormats) types.emplace_back(row.mime_type);
  return types;
}

int usual_rate_hz(Format format, int model_rate_hz) {
  return format == Format::ulaw || format == Format::alaw ? kG711RateHz : model_rate_hz;
}

std::string_view name_of(Format format) { return row_of(format).name; }
std::string_view mime_type(Format format) { return row_of(format).mime_type; }
std::string_view extension(Format format) { return row_of(format).name; }

int16_t to_s16(float x) {
  if (std::isnan(x)) return 0;
  return static_cast<int16_t>(std::nearbyint(std::clamp(x * 32767.0f, -32768.0f, 32767.0f)));
}

Encoder::Encoder(std::unique_ptr<Coder> coder, ByteSink sink)
    : coder_(std::move(coder)), sink_(std::move(sink)) {}
Encoder::~Encoder() = default;

void Encoder::write(std::span<const float> mono) {
  CHECK(!finished_, "samples after the end");
  std::array<int16_t, Coder::kMaxBlock> block;
  while (!mono.empty()) {
    const size_t count = std::min(mono.size(), block.size());
    std::transform(mono.begin(), mono.begin() + static_cast<std::ptrdiff_t>(count), block.begin(), to_s16);
    coder_->push(std::span(block).first(count), pending_);
    mono = mono.subspan(count);
    deliver();
  }
}

void Encoder::finish() {
  CHECK(!finished_, "finished twice");
  finished_ = true;
  coder_->finish(pending_);
  deliver();
}

std::vector<std::byte> Encoder::final_header() const {
  CHECK(finished_, "the header is known at the end only");
  return coder_->final_header();
}

void Encoder::deliver() {
  if (pending_.empty()) return;
  sink_(pending_);
  pending_.clear();
}

std::unique_ptr<Encoder> make_encoder(Format format, const EncoderOptions& options, ByteSink sink) {
  check_rate(options.sample_rate_hz);
  return std::make_unique<Encoder>(make_coder(format, options), std::move(sink));
}

std::vector<std::byte> encode(Format format, EncoderOptions options, std::span<const float> mono) {
  Bytes file;
  options.rewritable_header = true;
  const auto encoder =
      make_encoder(format, options, [&](std::span<const std::byte> bytes) { append(file, bytes); });
  encoder->write(mono);
  encoder->finish();
  const Bytes header = encoder->final_header();
  CHECK(header.size() <= file.size(), "header of ", header.size(), " bytes, file of ", file.size());
  std::copy(header.begin(), header.end(), file.begin());
  return file;
}

}  // namespace shoal::audio
