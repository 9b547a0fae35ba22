#include "bench/engine/load_table.h"

#include "base/error.h"
#include "bench/measure/table.h"

namespace shoal::bench {
namespace {

using Row = std::vector<std::string>;

std::string ms(double seconds) { return decimal(seconds * 1e3, seconds < 0.01 ? 1 : 0); }
std::string percent(double share) { return decimal(share * 100, 1); }
std::string megabytes(int64_t bytes) { return decimal(static_cast<double>(bytes) / 1e6, 0); }

std::string load_of(const LevelPlan& plan) {
  return plan.open_loop() ? concat(plan.rate_per_s, "/s") : std::to_string(plan.users);
}

std::string throughput_table(std::span<const LevelFigures> levels) {
  std::vector<Row> rows = {{"load", "audio s/s", "frames/s", "vs first", "batch", "step ms", "codec ms",
                            "RTF p50", "RTF p95", "done", "of", "took s"}};
  const std::vector<Scaling> scaling = scaling_of(levels);
  for (size_t i = 0; i < levels.size(); ++i) {
    const LevelFigures& level = levels[i];
    rows.push_back({load_of(level.plan), decimal(level.busy.audio_s_per_s, 2),
                    decimal(level.busy.frames_per_s, 1), decimal(scaling[i].throughput, 2) + "x",
                    decimal(level.busy.mean_batch, 2), decimal(level.busy.mean_step_ms, 2),
                    decimal(level.busy.mean_codec_pass_ms, 2), decimal(level.real_time_factor.p50, 3),
                    decimal(level.real_time_factor.p95, 3), std::to_string(level.requests.completed),
                    std::to_string(level.requests.submitted), decimal(level.elapsed_s, 1)});
  }
  return aligned(rows);
}

std::string latency_table(std::span<const LevelFigures> levels) {
  std::vector<Row> rows = {{"load", "first ms p50", "p90", "p95", "p99", "max", "gap ms p50", "p95", "p99",
                            "max", "request s p50", "p95", "p99", "added ms", "queue ms p50", "p95", "max"}};
  const std::vector<Scaling> scaling = scaling_of(levels);
  for (size_t i = 0; i < levels.size(); ++i) {
    const Percentiles &first = levels[i].first_audio_s, &gap = levels[i].chunk_gap_s,
                      &latency = levels[i].latency_s, &queue = levels[i].queue_wait_s;
    rows.push_back({load_of(levels[i].plan), ms(first.p50), ms(first.p90), ms(first.p95), ms(first.p99),
                    ms(first.max), ms(gap.p50), ms(gap.p95), ms(gap.p99), ms(gap.max),
                    decimal(latency.p50, 2), decimal(latency.p95, 2), decimal(latency.p99, 2),
                    decimal(scaling[i].added_latency_s * 1e3, 0), ms(queue.p50), ms(queue.p95),
                    ms(queue.max)});
  }
  return aligned(rows);
}

// Of models without a KV cache.
std::string short_listener_table(std::span<const LevelFigures> levels) {
  std::vector<Row> rows = {{"load", "never dry", "ran dry", "underruns", "dry s", "resident MB", "peak MB"}};
  for (const LevelFigures& level : levels) {
    rows.push_back({load_of(level.plan), std::to_string(level.never_dry()),
                    std::to_string(level.streams_with_underruns), std::to_string(level.underruns),
                    decimal(level.dry_s, 2), megabytes(level.resident_bytes),
                    megabytes(level.resident_peak_bytes)});
  }
  return aligned(rows);
}

std::string listener_table(std::span<const LevelFigures> levels) {
  if (levels.back().kv.pages == 0) return short_listener_table(levels);
  std::vector<Row> rows = {{"load", "never dry", "ran dry", "underruns", "dry s", "prefix hits %", "columns",
                            "cached", "computed", "KV peak", "pages", "preempted", "resident MB", "peak MB"}};
  for (const LevelFigures& level : levels) {
    rows.push_back({load_of(level.plan), std::to_string(level.never_dry()),
                    std::to_string(level.streams_with_underruns), std::to_string(level.underruns),
                    decimal(level.dry_s, 2), percent(level.whole.prefix_hit_rate),
                    std::to_string(level.prompt_columns), std::to_string(level.cached_columns),
                    std::to_string(level.computed_columns), std::to_string(level.kv_pages_peak),
                    std::to_string(level.kv.pages), std::to_string(level.whole.preemptions),
                    megabytes(level.resident_bytes), megabytes(level.resident_peak_bytes)});
  }
  return aligned(rows);
}

std::string memory_line(const LevelFigures& level) {
  std::string line = "memory MB:";
  for (const MemoryPart& part : level.memory) line += concat("  ", part.name, " ", megabytes(part.bytes));
  return line + "\n";
}

// Empty when every request of the level was completed.
std::string failure_line(const LevelFigures& level) {
  const RequestCounts& counts = level.requests;
  if (counts.completed == counts.submitted) return "";
  std::string line = concat("load ", load_of(level.plan), ": ", counts.submitted, " submitted, ",
                            counts.completed, " completed, ", counts.refused, " refused, ", counts.expired,
                            " expired, ", counts.failed, " failed, ", counts.cancelled, " cancelled");
  if (level.first_error) line += concat("; the first: ", level.first_error->message());
  return line + "\n";
}

}  // namespace

std::string load_table(std::span<const LevelFigures> levels) {
  if (levels.empty()) return "";
  std::string text = throughput_table(levels) + '\n' + latency_table(levels) + '\n' + listener_table(levels) +
                     '\n' + memory_line(levels.back());
  for (const LevelFigures& level : levels) text += failure_line(level);
  return text + '\n' + promise_table(promises_of(levels));
}

}  // namespace shoal::bench
