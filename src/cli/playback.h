// Sound that is heard as it is made: a player as a process.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "audio/encoder.h"
#include "cli/player.h"

namespace shoal::cli {

class Playback {
 public:
  // Starts the player, or, if it takes a file alone, opens one that finish() plays. `is_interrupted` is asked
  // while the player is waited for. Throws Error(io).
  Playback(const Player& player, int sample_rate_hz, std::function<bool()> is_interrupted);
  ~Playback();  // ends a player that still plays
  Playback(const Playback&) = delete;
  Playback& operator=(const Playback&) = delete;

  // Mono samples; returns once the player has room for them. Throws Error: cancelled (interrupted), io (the
  // player has ended).
  void write(std::span<const float> mono);
  // Until all has been heard. Throws as write().
  void finish();

 private:
  void start(const std::string& file);
  void send(std::span<const std::byte> bytes);
  void wait();
  [[noreturn]] void fail_as_player();

  const Player& player_;
  const int sample_rate_hz_;
  const std::function<bool()> interrupted_;
  std::string file_;  // for a player that takes one
  int pipe_ = -1;     // into the player, or the file
  int child_ = -1;
  std::unique_ptr<audio::Encoder> encoder_;
};

}  // namespace shoal::cli
