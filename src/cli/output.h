// Where `shoal say` puts its sound.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "audio/file_writer.h"

namespace shoal::cli {

class Playback;
struct Player;

struct OutputOptions {
  std::string path;     // "-" is standard output; empty: the sound is played
  std::string format;   // empty: by the path's ending, wav when it has none
  std::string player;   // empty: the first that is there
  bool stream = false;  // write pieces as they are made instead of replacing the file at the end

  // Whether the sound is wanted as it is made.
  bool wants_stream() const { return stream || path == "-" || path.empty(); }
};

class Output {
 public:
  // Checks the options, and finds the player. Throws Error: invalid_argument (unknown format or ending,
  // samples into a terminal, no path where nobody listens, options that do not go together), not_found (a
  // player).
  explicit Output(const OutputOptions& options);
  ~Output();

  // Opens the target, or starts the player; `is_interrupted` is asked while a player is waited for. Throws
  // Error as audio::AudioFileWriter and Playback do.
  void open(int sample_rate_hz, std::function<bool()> is_interrupted);
  // A file to remove if the process is killed before finish(); empty: none.
  std::string unfinished_path() const;
  void write(std::span<const float> mono);
  // The file is in place; the sound has been heard.
  void finish();
  // "out.wav", "played with aplay"
  std::string name() const;

 private:
  const OutputOptions& options_;
  const Player* player_ = nullptr;
  audio::Format format_ = audio::Format::wav;
  std::unique_ptr<audio::AudioFileWriter> file_;
  std::unique_ptr<Playback> playback_;
};

}  // namespace shoal::cli
