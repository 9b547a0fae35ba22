// What a listener hears who plays a stream while it arrives: arithmetic on the times of its pieces.
#pragma once

#include <cstdint>
#include <span>

namespace shoal::load {

// Sound that arrived at one moment. Times do not fall from piece to piece.
struct Piece {
  int64_t at_us = 0;
  int64_t frames = 0;  // at least 1
};

struct PlayerFigures {
  int64_t underruns = 0;
  int64_t dry_us = 0;  // silence in the middle of the sound, until the player went on
};

// A player that begins once it holds `buffer_ms` of sound, stops when all that has arrived is played (an
// underrun) and goes on when it holds as much again. It also begins when the answer has ended, at `end_us`. A
// piece that arrives at the very moment at which the sound before it ends is in time.
PlayerFigures play(std::span<const Piece> pieces, int rate_hz, int64_t buffer_ms, int64_t end_us);

// When a player without a buffer plays frame `frame`: silence at the beginning is waited for. `frame` has
// arrived.
int64_t heard_at_us(std::span<const Piece> pieces, int rate_hz, int64_t frame);

}  // namespace shoal::load
