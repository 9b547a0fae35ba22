#include "bench/engine/level_figures.h"

namespace shoal::bench {
namespace {

double per(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

// Of the values added between the two.
double mean_between(const Histogram& before, const Histogram& after) {
  return per(after.sum - before.sum, static_cast<double>(after.count - before.count));
}

int64_t difference(uint64_t before, uint64_t after) { return static_cast<int64_t>(after - before); }

}  // namespace

EngineFigures figures_between(const Statistics& before, const Statistics& after, double seconds) {
  const auto hit = static_cast<double>(after.kv.hit_columns - before.kv.hit_columns);
  const auto missed = static_cast<double>(after.kv.missed_columns - before.kv.missed_columns);
  return {.seconds = seconds,
          .frames_per_s = per(static_cast<double>(after.frames - before.frames), seconds),
          .audio_s_per_s = per(after.audio_s - before.audio_s, seconds),
          .mean_batch = mean_between(before.batch_size, after.batch_size),
          .mean_step_ms = mean_between(before.step_s, after.step_s) * 1e3,
          .mean_codec_pass_ms = mean_between(before.codec_pass_s, after.codec_pass_s) * 1e3,
          .prefix_hit_rate = per(hit, hit + missed),
          .prefix_hits = after.kv.hits - before.kv.hits,
          .prefix_lookups = after.kv.lookups - before.kv.lookups,
          .evictions = after.kv.evictions - before.kv.evictions,
          .preemptions = difference(before.preemptions, after.preemptions),
          .retried_steps = difference(before.retried_steps, after.retried_steps),
          .underruns = difference(before.underruns, after.underruns)};
}

}  // namespace shoal::bench
