// What the engine counts, as plain values that an exporter can convert.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal {

// A histogram with fixed upper bounds, as Prometheus counts them (not cumulative here).
struct Histogram {
  std::span<const double> bounds;  // rising; values above the last fall into the extra bucket
  std::vector<uint64_t> counts;    // [bounds.size() + 1]
  uint64_t count = 0;
  double sum = 0;

  Histogram() = default;
  explicit Histogram(std::span<const double> upper_bounds)
      : bounds(upper_bounds), counts(upper_bounds.size() + 1) {}
  void add(double value);
  double mean() const { return count ? sum / static_cast<double>(count) : 0; }
};

struct KvStatistics {
  int64_t pages = 0;          // of the pool
  int64_t pages_used = 0;     // held by sequences
  int64_t pages_cached = 0;   // held by no sequence, kept for prompts with the same beginning
  int64_t pages_free = 0;     // neither
  int64_t page_size = 0;      // tokens
  int64_t voices_cached = 0;  // whose prefixes are kept
  // Counted since the start or the last reload.
  int64_t lookups = 0, hits = 0;  // prompts looked up; prompts for which at least one column was found
  int64_t hit_columns = 0;        // found
  int64_t missed_columns = 0;     // not found
  int64_t evictions = 0;          // cached pages given to somebody else
  int64_t tail_copies = 0;        // partly shared pages that were copied
  double hit_rate() const {
    const int64_t columns = hit_columns + missed_columns;
    return columns ? static_cast<double>(hit_columns) / static_cast<double>(columns) : 0;
  }
};

struct VoiceStatistics {
  int64_t in_memory = 0;                                // encoded clips
  int64_t memory_hits = 0, disk_hits = 0, encoded = 0;  // since the start
  int64_t dropped_files = 0;                            // damaged or foreign entries of the disk cache
};

// Of the serving model: a reload restarts the counts, and requests that end on the old model are not counted.
struct Statistics {
  // Requests by how they ended.
  uint64_t submitted = 0, completed = 0, cancelled = 0, expired = 0, refused = 0, failed = 0;
  int64_t preparing = 0, waiting = 0, running = 0, paused = 0, finishing = 0;  // now
  uint64_t frames = 0;                                                         // generated
  double audio_s = 0;
  uint64_t preemptions = 0, underruns = 0, retried_steps = 0;
  uint64_t steps = 0, codec_passes = 0;
  double recent_batch_size = 0;  // mean of the last hundred steps
  Histogram queue_wait_s, first_audio_s, chunk_gap_s, real_time_factor, batch_size, step_s, codec_pass_s;
  KvStatistics kv;
  VoiceStatistics voices;
};

struct MemoryPart {
  std::string
      name;  // "language model", "codec", "KV pages", "codec streams", "workspaces", "voices"; "model"
  int64_t bytes = 0;
};

enum class EngineState {
  stopped,
  starting,
  ready,
  reloading,
  stopping,
  unloaded,  // Engine::unload(): the model is loaded again when it is needed
  loading    // again
};

// How a loaded model is kept in memory: the precision, or a narrower format of the setting of that name.
struct FormatNames {
  std::string precision;
  std::string weights;                      // of a language model's layers
  std::string kv_precision, codec_weights;  // empty for a model without

  bool operator==(const FormatNames&) const = default;
};

struct Health {
  EngineState state = EngineState::stopped;
  std::string model, device;
  FormatNames formats;  // empty while no model is loaded
  double uptime_s = 0;
  double loading_s = 0;            // since a load again began; 0: none is under way
  double last_load_s = 0;          // how long the last load took
  std::vector<MemoryPart> memory;  // planned and held by the engine
  int64_t resident_bytes = 0;      // of the process, as the system sees it
  bool gpu_available = false;      // this build and machine have one, whether it is used or not
  // Of the GPU, other processes' use included; both 0 on a CPU.
  int64_t device_used_bytes = 0, device_total_bytes = 0;
  Statistics statistics;
};

std::string_view name_of(EngineState state);
// "bfloat16", "bfloat16, int8 weights", "bfloat16, int8 weights, int8 keys and values, int8 codec".
std::string in_words(const FormatNames& formats);

}  // namespace shoal
