#include "bench/load/level_figures.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "bench/measure/table.h"

namespace shoal::load {
namespace {

using bench::decimal;

// Figures in milliseconds mean little beyond these.
constexpr double kLateLoop_ms = 5, kLateSend_ms = 5, kBusyClient = 0.9;
// English is spoken with 10 to 20 characters a second; half and double of that are no speech.
constexpr double kSlowest = 6, kFastest = 27;

void add_if(bench::Samples& samples, const std::optional<double>& value) {
  if (value) samples.add(*value);
}

}  // namespace

bool LevelTally::add(const RequestRecord& record, const RequestFigures& figures) {
  ++counts_.begun;
  send_lag_.add(figures.send_lag_ms);
  add_if(connect_, figures.connect_ms);
  if (record.outcome == Outcome::left) ++counts_.left;
  if (record.outcome == Outcome::interrupted) ++counts_.interrupted;
  if (record.outcome == Outcome::failed) {
    ++counts_.failed;
    FailureCount& failure = counts_.failures[record.failure->kind];
    if (failure.count++ == 0) failure.first = record.failure->detail;
  }
  if (record.outcome != Outcome::completed) return false;
  if (record.slow) {
    ++counts_.slow;
    return false;
  }
  ++counts_.completed;
  counts_.sound_s += figures.sound_s;
  counts_.characters += record.characters;
  counts_.rate_hz = record.format.rate_hz;
  counts_.silent += figures.first_audible_ms ? 0 : 1;
  add_if(first_byte_, figures.first_byte_ms);
  add_if(first_sound_, figures.first_sound_ms);
  add_if(first_audible_, figures.first_audible_ms);
  add_if(silence_, figures.leading_silence_ms);
  add_if(factor_, figures.real_time_factor);
  latency_.add(figures.latency_ms);
  longest_gap_.add(figures.longest_gap_ms);
  for (size_t i = 1; i < record.pieces.size(); ++i)
    gap_.add(static_cast<double>(record.pieces[i].at_us - record.pieces[i - 1].at_us) / 1e3);
  for (size_t i = 0; i < kBuffers_ms.size(); ++i) {
    counts_.underruns[i].count += figures.players[i].underruns;
    counts_.underruns[i].requests += figures.players[i].underruns > 0 ? 1 : 0;
    counts_.underruns[i].dry_s += static_cast<double>(figures.players[i].dry_us) / 1e6;
  }
  const bool good = keeps(objectives_, record, figures);
  counts_.good += good ? 1 : 0;
  return good;
}

LevelFigures LevelTally::figures(const LevelPlan& plan, const LevelRun& run) const {
  LevelFigures result = counts_;
  result.plan = plan;
  result.run = run;
  result.elapsed_s = static_cast<double>(run.ended_us - run.began_us) / 1e6;
  result.first_byte_ms = first_byte_.percentiles();
  result.first_sound_ms = first_sound_.percentiles();
  result.first_audible_ms = first_audible_.percentiles();
  result.leading_silence_ms = silence_.percentiles();
  result.latency_ms = latency_.percentiles();
  result.real_time_factor = factor_.percentiles();
  result.gap_ms = gap_.percentiles();
  result.longest_gap_ms = longest_gap_.percentiles();
  result.connect_ms = connect_.percentiles();
  result.send_lag_ms = send_lag_.percentiles();
  return result;
}

std::vector<std::string> LevelFigures::notes() const {
  std::vector<std::string> notes;
  if (run.loop_lag_ms.p99 > kLateLoop_ms || send_lag_ms.p99 > kLateSend_ms || run.cpu_share > kBusyClient)
    notes.push_back(concat("the load program was late: its loop by ", decimal(run.loop_lag_ms.p99, 1),
                           " ms, requests by ", decimal(send_lag_ms.p99, 1), " ms (p99), with ",
                           decimal(run.cpu_share * 100, 0),
                           " % of a core; times are at most so much better than they look"));
  const double speed = sound_s > 0 ? static_cast<double>(characters) / sound_s : 0;
  if (speed > 0 && (speed < kSlowest || speed > kFastest))
    notes.push_back(concat(decimal(speed, 1),
                           " characters in a second of sound is no speed of speech: does the server "
                           "say its sample rate (",
                           rate_hz, " Hz) right?"));
  if (silent > 0) notes.push_back(concat(silent, " of the completed answers are silent throughout"));
  return notes;
}

std::vector<bench::Promise> promises_of(std::span<const LevelFigures> levels) {
  std::vector<bench::JudgedLevel> judged;
  for (const LevelFigures& level : levels)
    judged.push_back({.users = level.plan.users,
                      .rate_per_s = level.plan.rate_per_s,
                      .asked = level.completed + level.failed,
                      .completed = level.completed,
                      .ran_dry = level.underruns[kUsualBuffer].requests > 0,
                      .audio_s_per_s = level.per_s(level.sound_s),
                      .latency_p50_s = level.latency_ms.p50 / 1e3,
                      .latency_p95_s = level.latency_ms.p95 / 1e3});
  return bench::promises_of(judged);
}

}  // namespace shoal::load
