#include "bench/load/summary.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "bench/measure/table.h"
#include "bench/runs/csv.h"
#include "bench/runs/figures_json.h"

namespace shoal::load {
namespace {

using bench::decimal;
using nlohmann::ordered_json;
using runs::json_of;
using runs::rounded;
using Row = std::vector<std::string>;

constexpr const char* kOutcomes[] = {"completed", "left", "failed", "interrupted"};

std::string key_of(size_t buffer) { return concat("buffer_", kBuffers_ms[buffer], "ms"); }

std::string hexadecimal(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string ms(double value) { return decimal(value, value < 100 ? 1 : 0); }
std::string load_name(const LevelPlan& plan) {
  return plan.open_loop() ? concat(plan.rate_per_s, "/s") : std::to_string(plan.users);
}

std::string times_table(std::span<const LevelFigures> levels) {
  std::vector<Row> rows = {{"load", "done", "left", "failed", "byte ms p50", "sound ms p50", "p95",
                            "audible ms p50", "p90", "p95", "p99", "gap ms p99", "whole ms p50", "p95",
                            "RTF p50", "p95"}};
  for (const LevelFigures& f : levels)
    rows.push_back({load_name(f.plan), std::to_string(f.completed), std::to_string(f.left),
                    std::to_string(f.failed), ms(f.first_byte_ms.p50), ms(f.first_sound_ms.p50),
                    ms(f.first_sound_ms.p95), ms(f.first_audible_ms.p50), ms(f.first_audible_ms.p90),
                    ms(f.first_audible_ms.p95), ms(f.first_audible_ms.p99), ms(f.gap_ms.p99),
                    ms(f.latency_ms.p50), ms(f.latency_ms.p95), decimal(f.real_time_factor.p50, 3),
                    decimal(f.real_time_factor.p95, 3)});
  return bench::aligned(rows);
}

std::string rates_table(std::span<const LevelFigures> levels) {
  std::vector<Row> rows = {{"load", "requests/s", "good/s", "good %", "sound s/s", "chars/s", "dry 50 ms",
                            "100 ms", "200 ms", "underruns 100 ms", "open", "lag ms p99", "client CPU %",
                            "took s"}};
  for (const LevelFigures& f : levels)
    rows.push_back({load_name(f.plan), decimal(f.per_s(static_cast<double>(f.completed)), 2),
                    decimal(f.per_s(static_cast<double>(f.good)), 2), decimal(100 * f.good_share(), 1),
                    decimal(f.per_s(f.sound_s), 2), decimal(f.per_s(static_cast<double>(f.characters)), 1),
                    std::to_string(f.underruns[0].requests), std::to_string(f.underruns[1].requests),
                    std::to_string(f.underruns[2].requests), std::to_string(f.underruns[kUsualBuffer].count),
                    std::to_string(f.run.most_open), ms(f.run.loop_lag_ms.p99),
                    decimal(f.run.cpu_share * 100, 1), decimal(f.elapsed_s, 1)});
  return bench::aligned(rows);
}

}  // namespace

ordered_json json_of(const RequestRecord& r, const RequestFigures& f, bool good, int64_t origin_us) {
  ordered_json json = {{"index", r.index},
                       {"outcome", kOutcomes[static_cast<int>(r.outcome)]},
                       {"due_s", rounded(static_cast<double>(r.due_us - origin_us) / 1e6)},
                       {"slow", r.slow},
                       {"voice", r.voice},
                       {"characters", r.characters},
                       {"status", r.status},
                       {"content_type", r.content_type},
                       {"send_lag_ms", rounded(f.send_lag_ms)},
                       {"connect_ms", rounded(f.connect_ms)},
                       {"first_byte_ms", rounded(f.first_byte_ms)},
                       {"first_sound_ms", rounded(f.first_sound_ms)},
                       {"first_audible_ms", rounded(f.first_audible_ms)},
                       {"leading_silence_ms", rounded(f.leading_silence_ms)},
                       {"latency_ms", rounded(f.latency_ms)},
                       {"sound_s", rounded(f.sound_s)},
                       {"rate_hz", r.format.rate_hz},
                       {"real_time_factor", rounded(f.real_time_factor)},
                       {"body_bytes", r.body_bytes},
                       {"pieces", f.pieces},
                       {"longest_gap_ms", rounded(f.longest_gap_ms)}};
  for (size_t i = 0; i < kBuffers_ms.size(); ++i)
    json["underruns"][key_of(i)] = {{"count", f.players[i].underruns},
                                    {"dry_ms", rounded(static_cast<double>(f.players[i].dry_us) / 1e3)}};
  json["good"] = good;
  json["sum"] = f.pieces > 0 ? ordered_json(hexadecimal(r.checksum)) : ordered_json();
  if (r.failure) json["failure"] = {{"kind", r.failure->kind}, {"detail", r.failure->detail}};
  return json;
}

ordered_json json_of(const LevelFigures& f) {
  ordered_json json = {{"loop", f.plan.open_loop() ? "open" : "closed"}};
  if (f.plan.open_loop())
    json["rate_per_s"] = f.plan.rate_per_s;
  else
    json["concurrency"] = f.plan.users;
  json["requests"] = {{"begun", f.begun},  {"completed", f.completed}, {"slow", f.slow},
                      {"left", f.left},    {"failed", f.failed},       {"interrupted", f.interrupted},
                      {"silent", f.silent}};
  json["failures"] = ordered_json::object();
  for (const auto& [kind, failure] : f.failures)
    json["failures"][kind] = {{"count", failure.count}, {"first", failure.first}};
  json["elapsed_s"] = rounded(f.elapsed_s);
  json["requests_per_s"] = rounded(f.per_s(static_cast<double>(f.completed)));
  json["sound_s"] = rounded(f.sound_s);
  json["sound_s_per_s"] = rounded(f.per_s(f.sound_s));
  json["characters_per_s"] = rounded(f.per_s(static_cast<double>(f.characters)));
  json["goodput"] = {{"requests", f.good},
                     {"per_s", rounded(f.per_s(static_cast<double>(f.good)))},
                     {"share", rounded(f.good_share())}};
  json["rate_hz"] = f.rate_hz;
  json["first_byte_ms"] = json_of(f.first_byte_ms);
  json["first_sound_ms"] = json_of(f.first_sound_ms);
  json["first_audible_ms"] = json_of(f.first_audible_ms);
  json["leading_silence_ms"] = json_of(f.leading_silence_ms);
  json["latency_ms"] = json_of(f.latency_ms);
  json["real_time_factor"] = json_of(f.real_time_factor);
  json["gap_ms"] = json_of(f.gap_ms);
  json["longest_gap_ms"] = json_of(f.longest_gap_ms);
  json["connect_ms"] = json_of(f.connect_ms);
  for (size_t i = 0; i < kBuffers_ms.size(); ++i)
    json["underruns"][key_of(i)] = {{"count", f.underruns[i].count},
                                    {"requests", f.underruns[i].requests},
                                    {"dry_s", rounded(f.underruns[i].dry_s)}};
  json["client"] = {{"loop_lag_ms", json_of(f.run.loop_lag_ms)},
                    {"send_lag_ms", json_of(f.send_lag_ms)},
                    {"cpu_share", rounded(f.run.cpu_share)},
                    {"most_open", f.run.most_open}};
  json["interrupted"] = f.run.interrupted;
  json["notes"] = f.notes();
  return json;
}

ordered_json json_of(const bench::Promise& promise) {
  return {{"what", promise.what},
          {"unit", promise.unit},
          {promise.at_least ? "at_least" : "at_most", promise.goal},
          {"measured", rounded(promise.measured)},
          {"kept", promise.kept()}};
}

void write_levels(runs::RunFolder& folder, std::span<const LevelFigures> levels,
                  std::span<const bench::Promise> promises) {
  std::vector<ordered_json> rows;
  for (const LevelFigures& level : levels) rows.push_back(json_of(level));
  ordered_json members = {{"levels", rows}};
  for (const bench::Promise& promise : promises) members["promises"].push_back(json_of(promise));
  folder.write_summary(members, runs::csv_of(rows));
}

std::string table_of(std::span<const LevelFigures> levels) {
  if (levels.empty()) return "";
  std::string text = times_table(levels) + '\n' + rates_table(levels);
  for (const LevelFigures& level : levels) {
    for (const auto& [kind, failure] : level.failures)
      text += concat("load ", load_name(level.plan), ": ", failure.count, " of ", level.begun, " failed, ",
                     kind, "; the first: ", failure.first, "\n");
    for (const std::string& note : level.notes())
      text += concat("load ", load_name(level.plan), ": ", note, "\n");
  }
  return text;
}

std::string comparison_table(std::span<const LevelFigures> first, std::span<const LevelFigures> second) {
  std::vector<Row> rows = {{"load", "requests/s", "then", "times", "sound s/s", "then", "times",
                            "audible ms p95", "then", "whole ms p95", "then", "failed", "then"}};
  const auto times = [](double before, double after) {
    return before > 0 ? decimal(after / before, 2) + "x" : std::string("-");
  };
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    const LevelFigures &a = first[i], &b = second[i];
    const double asked_a = a.per_s(static_cast<double>(a.completed)),
                 asked_b = b.per_s(static_cast<double>(b.completed)), sound_a = a.per_s(a.sound_s),
                 sound_b = b.per_s(b.sound_s);
    rows.push_back({load_name(a.plan), decimal(asked_a, 2), decimal(asked_b, 2), times(asked_a, asked_b),
                    decimal(sound_a, 2), decimal(sound_b, 2), times(sound_a, sound_b),
                    ms(a.first_audible_ms.p95), ms(b.first_audible_ms.p95), ms(a.latency_ms.p95),
                    ms(b.latency_ms.p95), std::to_string(a.failed), std::to_string(b.failed)});
  }
  return bench::aligned(rows);
}

}  // namespace shoal::load
