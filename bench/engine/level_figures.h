// What one level of load came to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/engine/supply.h"
#include "bench/measure/samples.h"
#include "shoal/error.h"
#include "shoal/statistics.h"

namespace shoal::bench {

// How the requests of a level ended: submitted = completed + refused + failed + expired + cancelled.
struct RequestCounts {
  int64_t submitted = 0;
  int64_t completed = 0;
  int64_t refused = 0;                    // by submit, because the queue was full
  int64_t failed = 0;                     // by submit or later, for any other reason
  int64_t expired = 0;                    // deadline
  int64_t cancelled = 0;                  // by us, when the run was interrupted
  std::map<std::string, int64_t> errors;  // by the code's name, refused and expired included
};

// The engine between two moments.
struct EngineFigures {
  double seconds = 0;
  double frames_per_s = 0;   // generated
  double audio_s_per_s = 0;  // decoded
  double mean_batch = 0;     // sequences in a step
  double mean_step_ms = 0, mean_codec_pass_ms = 0;
  double prefix_hit_rate = 0;  // of the columns looked up
  int64_t prefix_hits = 0, prefix_lookups = 0;
  int64_t evictions = 0, preemptions = 0, retried_steps = 0;
  int64_t underruns = 0;  // pieces that came late, by the engine's own count
};

EngineFigures figures_between(const Statistics& before, const Statistics& after, double seconds);

// Latencies are those of a caller, in seconds from the moment at which the request was due (an open loop that
// falls behind does not hide it), of completed requests only.
struct LevelFigures {
  LevelPlan plan;
  bool interrupted = false;
  std::optional<Error> first_error;
  double elapsed_s = 0;  // from the first request to the last end
  RequestCounts requests;
  double audio_s = 0;  // of the completed requests
  int64_t frames = 0;  // spoken in them

  // While the load lasted: until the first user had no further request, or the last request had arrived.
  EngineFigures busy;
  EngineFigures whole;  // with the time in which the last requests end

  Percentiles first_audio_s, chunk_gap_s, latency_s, real_time_factor, queue_wait_s;
  // Results of listeners that play while receiving (also if the pieces were read faster).
  int64_t underruns = 0, streams_with_underruns = 0;
  double dry_s = 0;
  int64_t never_dry() const { return requests.completed - streams_with_underruns; }

  int64_t prompt_columns = 0, cached_columns = 0, computed_columns = 0;
  KvStatistics kv;  // at the end
  int64_t kv_pages_peak = 0;
  std::vector<MemoryPart> memory;  // at the end
  int64_t resident_bytes = 0, resident_peak_bytes = 0;
  double submit_lag_max_s = 0;  // the largest delay of a submission behind its plan
};

}  // namespace shoal::bench
