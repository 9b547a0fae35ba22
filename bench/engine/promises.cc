#include "bench/engine/promises.h"

namespace shoal::bench {
namespace {

std::vector<JudgedLevel> judged(std::span<const LevelFigures> levels) {
  std::vector<JudgedLevel> result;
  for (const LevelFigures& level : levels)
    result.push_back({.users = level.plan.users,
                      .rate_per_s = level.plan.rate_per_s,
                      .asked = level.requests.submitted - level.requests.cancelled,
                      .completed = level.requests.completed,
                      .ran_dry = level.streams_with_underruns > 0,
                      .audio_s_per_s = level.busy.audio_s_per_s,
                      .latency_p50_s = level.latency_s.p50,
                      .latency_p95_s = level.latency_s.p95});
  return result;
}

}  // namespace

std::vector<Scaling> scaling_of(std::span<const LevelFigures> levels) { return scaling_of(judged(levels)); }
std::vector<Promise> promises_of(std::span<const LevelFigures> levels) { return promises_of(judged(levels)); }

}  // namespace shoal::bench
