// What one level of load came to.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/load/generator.h"
#include "bench/load/objective.h"
#include "bench/load/request_figures.h"
#include "bench/measure/promises.h"
#include "bench/measure/samples.h"

namespace shoal::load {

struct FailureCount {
  int64_t count = 0;
  std::string first;  // the detail of the first one
};

struct Underruns {
  int64_t count = 0;
  int64_t requests = 0;  // with one or more
  double dry_s = 0;
};

// begun = completed + slow + left + failed + interrupted. Latencies are those of completed requests.
struct LevelFigures {
  LevelPlan plan;
  LevelRun run;
  int64_t begun = 0, completed = 0, slow = 0, left = 0, failed = 0, interrupted = 0;
  // slow: whole answers to slow readers, of which nothing else counts.
  std::map<std::string, FailureCount> failures;  // by kind
  int64_t good = 0;                              // completed within every objective

  double elapsed_s = 0;  // from the beginning of the level to the end of its last request
  double sound_s = 0;    // of completed requests
  int64_t characters = 0;
  int rate_hz = 0;  // of the sound; 0: none came
  // Of the requests that stayed to the end.
  double good_share() const {
    const int64_t stayed = completed + failed;
    return stayed > 0 ? static_cast<double>(good) / static_cast<double>(stayed) : 0;
  }
  double per_s(double what) const { return elapsed_s > 0 ? what / elapsed_s : 0; }

  bench::Percentiles first_byte_ms, first_sound_ms, first_audible_ms, leading_silence_ms, latency_ms,
      real_time_factor, gap_ms, longest_gap_ms, connect_ms;
  bench::Percentiles send_lag_ms;                            // of all requests
  std::array<Underruns, kBuffers_ms.size()> underruns = {};  // of completed requests
  int64_t silent = 0;                                        // completed without an audible sample

  // Doubts about the figures themselves, as sentences: a client that was late, a rate that cannot be true.
  std::vector<std::string> notes() const;
};

// As `shoal bench` judges them: users who left do not count, and who ran dry had 100 ms of buffer.
std::vector<bench::Promise> promises_of(std::span<const LevelFigures> levels);

class LevelTally {
 public:
  explicit LevelTally(std::vector<Objective> objectives) : objectives_(std::move(objectives)) {}

  // Returns whether the request kept the objectives.
  bool add(const RequestRecord& record, const RequestFigures& figures);
  LevelFigures figures(const LevelPlan& plan, const LevelRun& run) const;

 private:
  const std::vector<Objective> objectives_;
  LevelFigures counts_;
  bench::Samples first_byte_, first_sound_, first_audible_, silence_, latency_, factor_, gap_, longest_gap_,
      connect_, send_lag_;
};

}  // namespace shoal::load
