// The figures of one request.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "bench/load/playback.h"
#include "bench/load/request_record.h"

namespace shoal::load {

constexpr std::array<int64_t, 3> kBuffers_ms = {50, 100, 200};
constexpr size_t kUsualBuffer = 1;  // 100 ms

// Milliseconds count from the moment at which the request was due. Absent: it did not come to that.
struct RequestFigures {
  double send_lag_ms = 0;  // behind the plan
  std::optional<double> connect_ms;
  std::optional<double> first_byte_ms, first_sound_ms;
  // When the first sample that is not silent is heard, by a player that plays what it has.
  std::optional<double> first_audible_ms;
  std::optional<double> leading_silence_ms;
  double latency_ms = 0;  // to the last byte
  double sound_s = 0;
  std::optional<double> real_time_factor;  // of a request that ended: latency / sound
  int64_t pieces = 0;
  double longest_gap_ms = 0;  // between two pieces
  std::array<PlayerFigures, kBuffers_ms.size()> players = {};
};

RequestFigures figures_of(const RequestRecord& record);

}  // namespace shoal::load
