#include "bench/load/request_figures.h"

#include <algorithm>

namespace shoal::load {

RequestFigures figures_of(const RequestRecord& record) {
  const auto since_due_ms = [&](int64_t us) { return static_cast<double>(us - record.due_us) / 1e3; };
  RequestFigures figures;
  figures.send_lag_ms = since_due_ms(record.begun_us);
  if (record.connected_us > 0)
    figures.connect_ms = static_cast<double>(record.connected_us - record.begun_us) / 1e3;
  if (record.first_byte_us > 0) figures.first_byte_ms = since_due_ms(record.first_byte_us);
  figures.latency_ms = since_due_ms(record.end_us);
  if (record.pieces.empty()) return figures;

  const int rate_hz = record.format.rate_hz;
  int64_t frames = 0;
  for (const Piece& piece : record.pieces) frames += piece.frames;
  figures.sound_s = static_cast<double>(frames) / rate_hz;
  figures.pieces = std::ssize(record.pieces);
  figures.first_sound_ms = since_due_ms(record.pieces.front().at_us);
  if (record.outcome == Outcome::completed)
    figures.real_time_factor = figures.latency_ms / 1e3 / figures.sound_s;
  if (record.first_audible_frame >= 0) {
    figures.first_audible_ms = since_due_ms(heard_at_us(record.pieces, rate_hz, record.first_audible_frame));
    figures.leading_silence_ms = static_cast<double>(record.first_audible_frame) * 1e3 / rate_hz;
  }
  for (size_t i = 1; i < record.pieces.size(); ++i)
    figures.longest_gap_ms =
        std::max(figures.longest_gap_ms,
                 static_cast<double>(record.pieces[i].at_us - record.pieces[i - 1].at_us) / 1e3);
  for (size_t i = 0; i < kBuffers_ms.size(); ++i)
    figures.players[i] = play(record.pieces, rate_hz, kBuffers_ms[i], record.end_us);
  return figures;
}

}  // namespace shoal::load
