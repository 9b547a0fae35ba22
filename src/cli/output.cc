#include "cli/output.h"

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

namespace shoal::cli {

audio::Format output_format(const OutputOptions& options) {
  if (options.path.empty())
    fail(ErrorCode::invalid_argument, "output: give a file with -o FILE, or -o - for standard output");
  if (options.path == "-" && isatty(STDOUT_FILENO) == 1) {
    fail(ErrorCode::invalid_argument,
         "output: standard output is a terminal; give -o FILE or send it into a pipe");
  }
  std::string name = options.format;
  if (name.empty()) {
    const std::string_view file = file_name(options.path);
    const size_t dot = file.rfind('.');
    name = dot == std::string_view::npos ? "wav" : std::string(file.substr(dot + 1));
    if (name == "ogg") name = "opus";
  }
  if (const auto format = audio::parse_format(name)) return *format;
  fail(ErrorCode::invalid_argument, "format: expected ", audio::list_of_formats(), ", got \"", name, "\"");
}

std::unique_ptr<audio::AudioFileWriter> open_output(const OutputOptions& options, int sample_rate_hz) {
  using Mode = audio::AudioFileWriter::Mode;
  const Mode mode = options.stream || options.path == "-" ? Mode::stream : Mode::replace;
  const audio::EncoderOptions encoder{.sample_rate_hz = sample_rate_hz};
  return std::make_unique<audio::AudioFileWriter>(options.path, output_format(options), encoder, mode);
}

}  // namespace shoal::cli
