// Turning samples into bytes of a container, piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::audio {

enum class Format {
  wav,        // 16-bit PCM in RIFF
  pcm_s16le,  // the bare samples, little-endian
  flac,       // 16-bit FLAC
  opus,       // Ogg Opus
  mp3,        // MPEG layer III, constant bitrate
  aac,        // AAC-LC in ADTS frames, constant bitrate
  ulaw,       // G.711 mu-law, bare bytes at 8 kHz (telephony)
  alaw,       // G.711 A-law, the same
};

// Names of the speech API: "wav", "pcm", "flac", "opus", "mp3", "aac", "ulaw", "alaw".
std::optional<Format> parse_format(std::string_view name);
std::string_view name_of(Format format);
// All names, in the order of a list that people read.
const std::vector<std::string>& format_names();
// The same in a sentence: "wav, pcm, ..., ulaw or alaw".
std::string list_of_formats();
// "audio/wav", "audio/pcm", "audio/flac", "audio/ogg", "audio/mpeg", "audio/aac" (Kokoro-FastAPI 0.8),
// "audio/basic" (mu-law; RFC 2046), "audio/x-alaw-basic". Opus is audio/ogg: RFC 7845 names the file so, and
// browsers play it; audio/opus is a stream of RTP.
std::string_view mime_type(Format format);
// Those of all formats.
std::vector<std::string> mime_types();
// The rate of sound whose listener chose none: 8000 Hz for G.711, else the model's.
inline constexpr int kG711RateHz = 8000;
int usual_rate_hz(Format format, int model_rate_hz);
// File name ending without the dot: the name.
std::string_view extension(Format format);

// Nearest 16-bit value of x * 32767, clamped; halves go to the even neighbour; NaN becomes 0. Every format is
// fed through this function, so all of them carry the same signal.
int16_t to_s16(float x);

struct EncoderOptions {
  int sample_rate_hz = 44100;
  // 0: the format's default for speech (opus 64 kbit/s; mp3 96 from 32 kHz on, 64 below, 32 up to 12 kHz;
  // aac 64, 32 at 8 kHz).
  // Ignored by wav, pcm, flac and G.711.
  int bitrate_bps = 0;
  // True for a file: the owner of the bytes will overwrite their beginning with final_header() after
  // finish(), so that the header carries true sizes. False for a stream, whose length nobody knows when it
  // starts: a wav then says 0xFFFFFFFF, the customary "until the end" that players and libsndfile accept;
  // flac says 0 samples
  // ("unknown" in that format) and mp3 has no Xing frame; aac is the same as a file. Streams also get an Ogg
  // page for every 20 ms of opus, files one a second.
  bool rewritable_header = false;
};

using ByteSink = std::function<void(std::span<const std::byte>)>;

// Internal: one per container.
class Coder;

// Mono float samples in, bytes of one file out. Bytes reach the sink inside write() and finish() only, as
// soon as the format can complete them: wav, pcm and G.711 at once, flac after 576 samples, opus every 20 ms,
// mp3 every frame (576 or 1152 samples) after its look-ahead, aac every 1024 samples (which sound 1600
// samples later than in the other formats: ADTS cannot tell a decoder to skip them). The same samples give
// the same bytes, however they are cut into pieces (the Ogg serial number is fixed). What the sink throws
// passes through; after any exception the encoder is only good for destroying.
class Encoder {
 public:
  Encoder(std::unique_ptr<Coder> coder, ByteSink sink);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // Any number of samples, including zero. Throws Error(too_large) when a rewritable wav exceeds 4 GiB.
  void write(std::span<const float> mono);
  // The last bytes. Call exactly once; write nothing afterwards.
  void finish();
  // After finish() of an encoder with a rewritable header: the new first bytes (may be empty: no change).
  // Never longer than the output of the sink.
  std::vector<std::byte> final_header() const;

 private:
  void deliver();

  std::unique_ptr<Coder> coder_;
  ByteSink sink_;
  std::vector<std::byte> pending_;  // coded, not yet delivered
  bool finished_ = false;
};

// Throws Error(invalid_argument) for a sample rate or bitrate that the format cannot carry: any rate from
// 4000 to 192000 Hz, but mp3 only 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000,
// and aac these and 64000, 88200, 96000, and G.711 only 8000. Opus is resampled to 48 kHz by its library.
std::unique_ptr<Encoder> make_encoder(Format format, const EncoderOptions& options, ByteSink sink);

// A whole clip at once, header with true sizes.
std::vector<std::byte> encode(Format format, EncoderOptions options, std::span<const float> mono);

}  // namespace shoal::audio
