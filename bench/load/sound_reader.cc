#include "bench/load/sound_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "bench/load/little_endian.h"

namespace shoal::load {
namespace {

constexpr uint32_t kUnknownSize = 0x7FFF'FF00;  // servers that stream write this or more, or 0
constexpr size_t kMostHeaderBytes = 1 << 20;
constexpr size_t kRiffBytes = 12, kChunkBytes = 8, kFormatBytes = 16;
constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;

}  // namespace

SoundReader::SoundReader(Container container, int stated_rate_hz, double silence, int usual_rate_hz)
    : container_(container),
      stated_rate_hz_(stated_rate_hz),
      usual_rate_hz_(usual_rate_hz),
      silence_(silence) {
  if (container == Container::pcm) begin_pcm();
}

void SoundReader::begin_pcm() {
  container_ = Container::pcm;
  stage_ = Stage::samples;
  format_.rate_hz = stated_rate_hz_ > 0 ? stated_rate_hz_ : usual_rate_hz_;
}

std::optional<Failure> SoundReader::take(std::string_view bytes) {
  if (container_ == Container::pcm && format_.rate_hz == 0)
    return Failure{"no_rate", "the answer does not say the sample rate of its PCM (--pcm-rate can)"};
  if (stage_ == Stage::rest) return pass(bytes);
  while (!bytes.empty() || (stage_ == Stage::header && !pending_.empty())) {
    if (stage_ == Stage::samples) {
      const size_t ours =
          data_left_ < 0 ? bytes.size() : std::min(bytes.size(), static_cast<size_t>(data_left_));
      read_samples(bytes.substr(0, ours));
      bytes.remove_prefix(ours);
      if (data_left_ < 0) continue;
      data_left_ -= static_cast<int64_t>(ours);
      if (data_left_ == 0 && !bytes.empty()) {
        if (!bytes.starts_with('R')) stage_ = Stage::rest;
        if (stage_ == Stage::rest) return pass(bytes);
        stage_ = Stage::header, riff_seen_ = format_seen_ = false, pending_.clear();
      }
      continue;
    }
    pending_ += bytes;
    bytes = {};
    if (container_ == Container::bare_wav && frames_ == 0 && !riff_seen_ &&
        !std::string_view("RIFF").starts_with(pending_.substr(0, 4))) {
      begin_pcm();
      const std::string rest = std::exchange(pending_, {});
      return take(rest);
    }
    bool needs_more = false;
    if (auto failure = read_header(needs_more)) return failure;
    if (needs_more) break;
    if (stage_ == Stage::samples) {
      const std::string rest = std::exchange(pending_, {});
      return take(rest);
    }
  }
  return std::nullopt;
}

std::optional<Failure> SoundReader::read_header(bool& needs_more) {
  needs_more = true;
  if (!riff_seen_) {
    const std::string_view magic = std::string_view("RIFF").substr(0, pending_.size());
    if (!pending_.starts_with(magic))
      return Failure{"not_sound", concat("expected a WAV file, got \"", printable(pending_, 60), "\"")};
    if (pending_.size() < kRiffBytes) return std::nullopt;
    if (pending_.compare(8, 4, "WAVE") != 0) return Failure{"not_sound", "a RIFF file that is not WAVE"};
    pending_.erase(0, kRiffBytes);
    riff_seen_ = true;
  }
  while (pending_.size() >= kChunkBytes) {
    const std::string name = pending_.substr(0, 4);
    const uint32_t size = little_endian(pending_, 4, 4);
    if (name == "data") {
      if (!format_seen_) return Failure{"bad_sound", "the WAV file has samples before their format"};
      data_left_ = size == 0 || size >= kUnknownSize ? -1 : int64_t{size};
      pending_.erase(0, kChunkBytes);
      stage_ = Stage::samples;
      needs_more = false;
      return std::nullopt;
    }
    if (size > kMostHeaderBytes) return Failure{"bad_sound", "a chunk of the WAV header has more than 1 MiB"};
    const size_t whole = kChunkBytes + size + size % 2;
    if (pending_.size() < whole) return std::nullopt;
    if (name == "fmt ")
      if (auto failure = read_format(std::string_view(pending_).substr(kChunkBytes, size))) return failure;
    pending_.erase(0, whole);
  }
  return std::nullopt;
}

std::optional<Failure> SoundReader::read_format(std::string_view chunk) {
  if (chunk.size() < kFormatBytes) return Failure{"bad_sound", "the WAV file's format is cut off"};
  uint32_t tag = little_endian(chunk, 0, 2);
  if (tag == kExtensible && chunk.size() >= 26) tag = little_endian(chunk, 24, 2);
  const uint32_t bits = little_endian(chunk, 14, 2), rate = little_endian(chunk, 4, 4),
                 per_second = little_endian(chunk, 8, 4);
  SoundFormat format{.rate_hz = static_cast<int>(rate),
                     .channels = static_cast<int>(little_endian(chunk, 2, 2)),
                     .bytes_per_sample = static_cast<int>(bits / 8),
                     .is_float = tag == kFloat};
  const bool known =
      (tag == kPcm && (bits == 16 || bits == 24 || bits == 32)) || (tag == kFloat && bits == 32);
  if (!known || format.channels < 1 || format.channels > 8)
    return Failure{"bad_sound", concat("a WAV file of format ", tag, " with ", bits, " bits and ",
                                       format.channels, " channels cannot be read here")};
  if (rate < 1'000 || rate > kMostRate_hz) return Failure{"bad_sound", concat("a WAV file of ", rate, " Hz")};
  const uint64_t expected = uint64_t{rate} * static_cast<uint64_t>(format.channels) * (bits / 8);
  if (per_second != expected)
    return Failure{"rate_contradiction", concat("the WAV header says ", rate, " Hz, which is ", expected,
                                                " bytes a second, and ", per_second, " bytes a second")};
  if (stated_rate_hz_ > 0 && format.rate_hz != stated_rate_hz_)
    return Failure{"rate_contradiction", concat("the WAV header says ", rate, " Hz, the head of the answer ",
                                                stated_rate_hz_, " Hz")};
  if (format_.rate_hz > 0 && format.rate_hz != format_.rate_hz)
    return Failure{"rate_contradiction",
                   concat("a WAV file of ", rate, " Hz follows one of ", format_.rate_hz, " Hz")};
  format_ = format;
  format_seen_ = true;
  return std::nullopt;
}

bool SoundReader::is_audible(const char* sample) const {
  if (format_.is_float) {
    float value = 0;
    std::memcpy(&value, sample, sizeof value);
    return std::abs(value) >= silence_;
  }
  // Moved to the top of 32 bits, which gives the sign.
  const auto count = static_cast<size_t>(format_.bytes_per_sample);
  const uint32_t bits = little_endian({sample, count}, 0, count) << (32 - 8 * count);
  return std::abs(static_cast<double>(static_cast<int32_t>(bits))) >= silence_ * 0x1p31;
}

std::optional<Failure> SoundReader::pass(std::string_view bytes) {
  rest_bytes_ += bytes.size();
  if (rest_bytes_ <= kMostHeaderBytes) return std::nullopt;
  return Failure{"endless", "more than 1 MiB follows the samples that the WAV header promised"};
}

void SoundReader::read_samples(std::string_view bytes) {
  if (kept_ != nullptr) *kept_ += bytes;
  for (const char byte : bytes) checksum_ = (checksum_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_) + std::string(bytes);
    pending_.clear();
    bytes = joined;
  }
  const auto frame = static_cast<size_t>(bytes_per_frame());
  const size_t whole = bytes.size() / frame;
  const auto step = static_cast<size_t>(format_.bytes_per_sample);
  for (size_t at = 0; first_audible_frame_ < 0 && at < whole * frame; at += step)
    if (is_audible(bytes.data() + at)) first_audible_frame_ = frames_ + static_cast<int64_t>(at / frame);
  frames_ += static_cast<int64_t>(whole);
  pending_ = bytes.substr(whole * frame);
}

std::optional<Failure> SoundReader::end() const {
  if (stage_ == Stage::header && frames_ == 0 && !riff_seen_ && pending_.empty())
    return Failure{"no_sound", "the answer is empty"};
  if (stage_ == Stage::header || data_left_ > 0)
    return Failure{"cut_off", stage_ == Stage::header
                                  ? "the answer ended in the WAV header"
                                  : concat("the WAV header promised ", data_left_, " more bytes")};
  if (frames_ == 0) return Failure{"no_sound", "the answer has no samples"};
  if (!pending_.empty()) return Failure{"cut_off", "the answer ended within a sample"};
  return std::nullopt;
}

}  // namespace shoal::load
