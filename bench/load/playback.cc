#include "bench/load/playback.h"

namespace shoal::load {
namespace {

int64_t us_of(int64_t frames, int rate_hz) { return frames * 1'000'000 / rate_hz; }

}  // namespace

PlayerFigures play(std::span<const Piece> pieces, int rate_hz, int64_t buffer_ms, int64_t end_us) {
  PlayerFigures figures;
  const int64_t wanted = (buffer_ms * rate_hz + 999) / 1000;
  int64_t arrived = 0;
  int64_t played = 0;  // before the present stretch of playing
  int64_t began_us = 0, stopped_us = 0;
  bool plays = false;
  const auto begin = [&](int64_t at_us) {
    plays = true;
    began_us = at_us;
    if (figures.underruns > 0) figures.dry_us += at_us - stopped_us;
  };
  for (const Piece& piece : pieces) {
    const int64_t runs_dry_us = began_us + us_of(arrived - played, rate_hz);
    if (plays && piece.at_us > runs_dry_us) {
      ++figures.underruns;
      stopped_us = runs_dry_us;
      played = arrived;
      plays = false;
    }
    arrived += piece.frames;
    if (!plays && arrived - played >= wanted) begin(piece.at_us);
  }
  if (!plays && arrived > played) begin(end_us);
  return figures;
}

int64_t heard_at_us(std::span<const Piece> pieces, int rate_hz, int64_t frame) {
  int64_t arrived = 0, played = 0, began_us = 0;
  for (const Piece& piece : pieces) {
    if (arrived == 0 || piece.at_us > began_us + us_of(arrived - played, rate_hz)) {
      began_us = piece.at_us;
      played = arrived;
    }
    arrived += piece.frames;
    if (frame < arrived) break;
  }
  return began_us + us_of(frame - played, rate_hz);
}

}  // namespace shoal::load
