// Internal: one container format, from 16-bit samples to bytes. encoder.cc owns the sink and the order of
// calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "audio/encoder.h"

namespace shoal::audio {

using Bytes = std::vector<std::byte>;

inline void append(Bytes& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// The C libraries behind some coders append to `out`; they never call a sink, so no exception of a caller
// passes through them.
class Coder {
 public:
  Coder() = default;
  virtual ~Coder() = default;
  Coder(const Coder&) = delete;
  Coder& operator=(const Coder&) = delete;

  // Appends the bytes that `samples` complete. At most kMaxBlock samples.
  virtual void push(std::span<const int16_t> samples, Bytes& out) = 0;
  // Appends the rest; called once, even if nothing was pushed.
  virtual void finish(Bytes& out) = 0;
  // After finish(): Encoder::final_header().
  virtual Bytes final_header() const { return {}; }

  static constexpr size_t kMaxBlock = 4096;
};

// options.sample_rate_hz is in 4000 .. 192000; any other value that a format cannot carry throws
// Error(invalid_argument).
std::unique_ptr<Coder> make_wav_coder(const EncoderOptions& options);
std::unique_ptr<Coder> make_pcm_coder();
std::unique_ptr<Coder> make_flac_coder(const EncoderOptions& options);
std::unique_ptr<Coder> make_opus_coder(const EncoderOptions& options);
std::unique_ptr<Coder> make_mp3_coder(const EncoderOptions& options);
std::unique_ptr<Coder> make_aac_coder(const EncoderOptions& options);
std::unique_ptr<Coder> make_ulaw_coder(const EncoderOptions& options);
std::unique_ptr<Coder> make_alaw_coder(const EncoderOptions& options);

}  // namespace shoal::audio
