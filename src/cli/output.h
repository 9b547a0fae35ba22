// Where `shoal say` puts its sound.
#pragma once

#include <memory>
#include <string>

#include "audio/file_writer.h"

namespace shoal::cli {

struct OutputOptions {
  std::string path;     // "-" is standard output
  std::string format;   // empty: by the path's ending, wav when it has none
  bool stream = false;  // write pieces as they are made instead of replacing the file at the end
};

// The format that the options ask for. Throws Error(invalid_argument): no path, unknown format or ending, a
// terminal.
audio::Format output_format(const OutputOptions& options);

// Opens the target. Throws Error as audio::AudioFileWriter does.
std::unique_ptr<audio::AudioFileWriter> open_output(const OutputOptions& options, int sample_rate_hz);

}  // namespace shoal::cli
