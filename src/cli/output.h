// Where `shoal say` puts its sound.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "audio/encoder.h"

namespace shoal::cli {

class SpeechOutput {
 public:
  virtual ~SpeechOutput() = default;
  virtual void write(std::span<const float> mono) = 0;
  // The sound is whole. Without it, nothing is left behind (standard output apart).
  virtual void commit() = 0;
};

struct OutputOptions {
  std::string path;     // "-" is standard output
  std::string format;   // empty: by the path's ending, wav when it has none
  bool stream = false;  // write pieces as they are made instead of replacing the file at the end
  int sample_rate_hz = 0;
};

// The format that the options ask for. Throws Error(invalid_argument): unknown format or ending.
audio::Format output_format(const OutputOptions& options);

// Opens the target, so that a bad path fails before any work. Throws Error as audio::AudioFileWriter does.
std::unique_ptr<SpeechOutput> open_output(const OutputOptions& options);

}  // namespace shoal::cli
