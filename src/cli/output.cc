#include "cli/output.h"

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/nearest.h"
#include "cli/playback.h"
#include "cli/player.h"

namespace shoal::cli {
namespace {

audio::Format format_of(const OutputOptions& options) {
  std::string name = options.format;
  if (name.empty()) {
    const std::string_view file = file_name(options.path);
    const size_t dot = file.rfind('.');
    name = dot == std::string_view::npos ? "wav" : std::string(file.substr(dot + 1));
  }
  // Names of the container, and longer ones.
  if (name == "ogg" || name == "oga") name = "opus";
  if (name == "wave") name = "wav";
  if (const auto format = audio::parse_format(name)) return *format;
  fail(ErrorCode::invalid_argument, "format: expected ", audio::list_of_formats(), ", got \"",
       printable(name), "\"",
       did_you_mean(name, {"wav", "pcm", "flac", "opus", "mp3", "aac", "ulaw", "alaw"}));
}

const Player& player_of(const OutputOptions& options) {
  if (options.player.empty() && isatty(STDOUT_FILENO) != 1)
    fail(ErrorCode::invalid_argument,
         "output: give a file with -o FILE, or -o - for standard output; only in a terminal the sound is "
         "played");
  if (!options.format.empty() || options.stream)
    fail(ErrorCode::invalid_argument, options.stream ? "stream" : "format",
         ": is that of a file; give -o FILE, too");
  return choose_player(options.player, this_machine());
}

void check_path(const OutputOptions& options) {
  if (!options.player.empty())
    fail(ErrorCode::invalid_argument, "player: the sound goes into a file or is played; give -o or --player");
  if (options.path == "-" && isatty(STDOUT_FILENO) == 1)
    fail(ErrorCode::invalid_argument,
         "output: standard output is a terminal; without -o the sound is played, with -o FILE it is written");
}

}  // namespace

Output::Output(const OutputOptions& options) : options_(options) {
  if (options.path.empty()) {
    player_ = &player_of(options);
  } else {
    check_path(options);
    format_ = format_of(options);
  }
}

Output::~Output() = default;

void Output::open(int sample_rate_hz, std::function<bool()> is_interrupted) {
  if (player_) {
    playback_ = std::make_unique<Playback>(*player_, sample_rate_hz, std::move(is_interrupted));
    return;
  }
  using Mode = audio::AudioFileWriter::Mode;
  const audio::EncoderOptions encoder{.sample_rate_hz = sample_rate_hz};
  file_ = std::make_unique<audio::AudioFileWriter>(options_.path, format_, encoder,
                                                   options_.wants_stream() ? Mode::stream : Mode::replace);
}

std::string Output::unfinished_path() const { return file_ ? file_->unfinished_path() : ""; }

void Output::write(std::span<const float> mono) { playback_ ? playback_->write(mono) : file_->write(mono); }

void Output::finish() { playback_ ? playback_->finish() : file_->commit(); }

std::string Output::name() const { return player_ ? concat("played with ", player_->name) : options_.path; }

}  // namespace shoal::cli
