#include "audio/clip.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sndfile.h>

#include "base/error.h"
#include "base/file.h"

namespace shoal::audio {
namespace {

constexpr float kSilencePeak = 1e-3f;  // -60 dBFS
// +24 dB over full scale. Louder "sound" is integers stored as floats, or numbers whose sums would overflow.
constexpr float kMaxAmplitude = 16.0f;
constexpr int64_t kBlockFrames = 4096;

// The file as libsndfile reads it. Its callbacks are called from C, so they must not throw; sf_count_t is
// signed 64 bits and any value in it may come from a malicious file.
struct MemoryFile {
  std::span<const std::byte> bytes;
  sf_count_t position = 0;

  static MemoryFile& of(void* self) { return *static_cast<MemoryFile*>(self); }
  sf_count_t size() const { return static_cast<sf_count_t>(bytes.size()); }

  static sf_count_t get_size(void* self) { return of(self).size(); }
  static sf_count_t tell(void* self) { return of(self).position; }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }

  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    MemoryFile& file = of(self);
    const sf_count_t origin = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? file.position : file.size();
    sf_count_t target = 0;
    if (__builtin_add_overflow(origin, offset, &target) || target < 0) return -1;
    return file.position = std::min(target, file.size());
  }

  static sf_count_t read(void* to, sf_count_t count, void* self) {
    MemoryFile& file = of(self);
    const sf_count_t got = std::clamp<sf_count_t>(count, 0, file.size() - file.position);
    if (got > 0) std::memcpy(to, file.bytes.data() + file.position, static_cast<size_t>(got));
    file.position += got;
    return got;
  }
};

struct CloseFile {
  void operator()(SNDFILE* file) const { sf_close(file); }
};
using SoundFile = std::unique_ptr<SNDFILE, CloseFile>;

bool has_at(std::span<const std::byte> bytes, size_t offset, std::string_view magic) {
  return bytes.size() >= offset + magic.size() &&
         std::memcmp(bytes.data() + offset, magic.data(), magic.size()) == 0;
}

// An MPEG audio frame starts with 11 set bits; layer bits 00 mark AAC in ADTS frames.
bool has_mpeg_sync(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0xFF} && (bytes[1] & std::byte{0xE0}) == std::byte{0xE0};
}
bool is_aac(std::span<const std::byte> bytes) {
  if (has_at(bytes, 4, "ftyp") || has_at(bytes, 0, "ADIF")) return true;
  return has_mpeg_sync(bytes) && (bytes[1] & std::byte{0xF6}) == std::byte{0xF0};
}

// libsndfile also parses two dozen formats that no recording of a voice comes in (studio patches, matrices of
// numerical programs, ...), and its ALAC decoder prints: foreign bytes are kept away from those parsers.
bool is_expected_container(std::span<const std::byte> bytes) {
  for (const std::string_view magic : {"RIFF", "RIFX", "RF64", "riff", "FORM", "fLaC", "OggS", "ID3", ".snd"})
    if (has_at(bytes, 0, magic)) return true;
  return has_mpeg_sync(bytes);
}

void check_container(std::span<const std::byte> bytes, std::string_view name, const ClipLimits& limits) {
  if (static_cast<uint64_t>(bytes.size()) >
      static_cast<uint64_t>(std::max<int64_t>(0, limits.max_file_bytes)))
    fail(ErrorCode::too_large, name, ": ", bytes.size(), " bytes, at most ", limits.max_file_bytes,
         " are accepted");
  if (bytes.empty()) fail(ErrorCode::corrupt_file, name, ": the file is empty");
  if (is_aac(bytes))
    fail(ErrorCode::unsupported, name, ": AAC/M4A is not supported; convert it to wav, flac, ogg or mp3");
  if (!is_expected_container(bytes))
    fail(ErrorCode::corrupt_file, name, ": not a readable audio file (wav, flac, ogg, mp3, aiff)");
}

SoundFile open_sound(MemoryFile& memory, SF_INFO& info, std::string_view name) {
  SF_VIRTUAL_IO io{MemoryFile::get_size, MemoryFile::seek, MemoryFile::read, MemoryFile::write,
                   MemoryFile::tell};
  SoundFile file(sf_open_virtual(&io, SFM_READ, &info, &memory));
  if (!file) fail(ErrorCode::corrupt_file, name, ": not a readable audio file (wav, flac, ogg, mp3, aiff)");
  return file;
}

void check_info(const SF_INFO& info, std::string_view name, const ClipLimits& limits) {
  if (info.channels < 1 || info.channels > limits.max_channels)
    fail(ErrorCode::invalid_argument, name, ": expected 1 to ", limits.max_channels, " channels, got ",
         info.channels);
  if (info.samplerate < limits.min_sample_rate_hz || info.samplerate > limits.max_sample_rate_hz)
    fail(ErrorCode::invalid_argument, name, ": expected a sample rate of ", limits.min_sample_rate_hz, " to ",
         limits.max_sample_rate_hz, " Hz, got ", info.samplerate);
}

// The mean of a frame's channels, summed in float32 as the reference does.
float mean_of(const float* frame, int channels, std::string_view name) {
  float sum = 0;
  for (int c = 0; c < channels; ++c) {
    if (!(std::abs(frame[c]) <= kMaxAmplitude))  // also true for NaN
      fail(ErrorCode::invalid_argument, name, ": expected samples from -1 to 1, got ", frame[c]);
    sum += frame[c];
  }
  return sum / static_cast<float>(channels);
}

// Reads to the end in blocks: info.frames may be anything (2^63 - 1 for a streamed FLAC) and is never used.
void read_samples(SNDFILE* file, const SF_INFO& info, std::string_view name, const ClipLimits& limits,
                  std::vector<float>& samples) {
  const double max_samples = limits.max_seconds * info.samplerate;
  std::vector<float> block(static_cast<size_t>(kBlockFrames * info.channels));
  for (sf_count_t got; (got = sf_readf_float(file, block.data(), kBlockFrames)) > 0;) {
    if (static_cast<double>(samples.size()) + static_cast<double>(got) > max_samples)
      fail(ErrorCode::too_large, name, ": longer than the limit of ", limits.max_seconds, " seconds");
    for (sf_count_t frame = 0; frame < got; ++frame)
      samples.push_back(mean_of(block.data() + frame * info.channels, info.channels, name));
  }
  if (const int error = sf_error(file); error != SF_ERR_NO_ERROR)
    fail(ErrorCode::corrupt_file, name, ": damaged after ", samples.size(),
         " samples: ", sf_error_number(error));
}

}  // namespace

Clip decode_clip(std::span<const std::byte> bytes, std::string_view name, const ClipLimits& limits) {
  check_container(bytes, name, limits);
  MemoryFile memory{bytes};
  SF_INFO info{};
  const SoundFile file = open_sound(memory, info, name);
  check_info(info, name, limits);
  Clip clip{.sample_rate_hz = info.samplerate, .samples = {}};
  read_samples(file.get(), info, name, limits, clip.samples);
  if (clip.samples.empty()) fail(ErrorCode::invalid_argument, name, ": the file holds no samples");
  return clip;
}

Clip read_clip(const std::string& path, const ClipLimits& limits) {
  const std::string bytes = read_file(path, limits.max_file_bytes);
  return decode_clip(std::as_bytes(std::span(bytes)), path, limits);
}

bool is_silent(std::span<const float> samples) {
  return std::none_of(samples.begin(), samples.end(), [](float x) { return std::abs(x) > kSilencePeak; });
}

}  // namespace shoal::audio
