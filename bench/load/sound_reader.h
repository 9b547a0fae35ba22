// The sound in an answer, while it arrives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/load/failure.h"
#include "bench/load/question.h"

namespace shoal::load {

constexpr int kMostRate_hz = 768'000;

struct SoundFormat {
  int rate_hz = 0;  // 0: not known yet
  int channels = 1;
  int bytes_per_sample = 2;
  bool is_float = false;
};

// WAV (16, 24 or 32 bits, or 32-bit floats; of known or unknown length; also several files one after the
// other, as some servers stream) or 16-bit little-endian mono PCM. A frame is one sample of each channel.
class SoundReader {
 public:
  // `stated_rate_hz`: what the head of the answer says; 0: nothing. PCM needs it; a WAV header must agree
  // with it. `silence`: a sample below this share of full scale is silent.
  SoundReader(Container container, int stated_rate_hz, double silence, int usual_rate_hz = 0);

  // Appends the bytes of all samples that come from now on; `into` outlives this.
  void keep_samples(std::string& into) { kept_ = &into; }

  std::optional<Failure> take(std::string_view bytes);
  // The answer is whole, as HTTP counts: is the sound?
  std::optional<Failure> end() const;

  const SoundFormat& format() const { return format_; }
  int64_t frames() const { return frames_; }
  // The first frame of which a sample is loud enough; -1: none yet.
  int64_t first_audible_frame() const { return first_audible_frame_; }
  // Of the samples' bytes (FNV-1a, 64 bits): equal sound has an equal sum.
  uint64_t checksum() const { return checksum_; }

 private:
  // Each takes what it can use of `rest` and returns false when it needs more bytes.
  std::optional<Failure> read_header(bool& needs_more);
  std::optional<Failure> read_format(std::string_view chunk);
  void read_samples(std::string_view bytes);
  std::optional<Failure> pass(std::string_view bytes);  // what follows the samples
  bool is_audible(const char* sample) const;
  int64_t bytes_per_frame() const { return int64_t{format_.channels} * format_.bytes_per_sample; }

  void begin_pcm();

  enum class Stage { header, samples, rest };  // rest: padding, or lists of names
  Container container_;
  int stated_rate_hz_, usual_rate_hz_;
  double silence_;
  Stage stage_ = Stage::header;
  bool riff_seen_ = false, format_seen_ = false;
  SoundFormat format_;
  std::string pending_;     // bytes of a header or of a frame that is not whole
  int64_t data_left_ = -1;  // bytes of samples that the header still promises; -1: it promises none
  int64_t frames_ = 0, first_audible_frame_ = -1;
  uint64_t checksum_ = 0xcbf29ce484222325;
  std::string* kept_ = nullptr;
  size_t rest_bytes_ = 0;
};

}  // namespace shoal::load
