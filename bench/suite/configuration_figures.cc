#include "bench/suite/configuration_figures.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "bench/measure/table.h"
#include "bench/runs/figures_json.h"

namespace shoal::suite {
namespace {

using bench::decimal;
using nlohmann::ordered_json;
using runs::json_of;
using runs::rounded;

constexpr const char* kPhases[] = {"warm_up", "sample", "batch"};

double over(double value, double by) { return by > 0 ? value / by : 0; }

void add(Times& times, const SpeechSummary& summary) {
  times.latency_ms.add(summary.total_s * 1e3);
  times.first_audio_ms.add(summary.first_audio_s * 1e3);
  times.real_time_factor.add(summary.real_time_factor());
}

ordered_json times_json(const Times& times) {
  return {{"latency_ms", json_of(times.latency_ms.percentiles())},
          {"first_audio_ms", json_of(times.first_audio_ms.percentiles())},
          {"real_time_factor", json_of(times.real_time_factor.percentiles())}};
}

std::string megabytes(int64_t bytes) { return decimal(static_cast<double>(bytes) / 1e6, 0); }
std::string ms(double value) { return decimal(value, value < 100 ? 1 : 0); }

}  // namespace

void ConfigurationFigures::add(const Spoken& spoken) {
  const SpeechSummary& s = spoken.summary;
  if (spoken.phase == Phase::warm_up) {
    warm_up_ms_.push_back(s.total_s * 1e3);
  } else if (spoken.phase == Phase::batch) {
    ++batch_requests_;
    batch_sound_s_ += s.audio_s();
  } else {
    suite::add(all_, s);
    auto text = std::ranges::find(texts_, spoken.text, [](const auto& each) { return each.first; });
    if (text == texts_.end()) {
      text = texts_.emplace(texts_.end(), spoken.text, Times());
      text->second.characters = spoken.characters;
    }
    suite::add(text->second, s);
    tokens_per_s_.add(over(static_cast<double>(s.frames), s.total_s));
    sample_sound_s_ += s.audio_s();
    sample_s_ += s.total_s;
  }
}

double ConfigurationFigures::capacity() const {
  return batch_requests_ > 0 ? over(batch_sound_s_, batch_s) : over(sample_sound_s_, sample_s_);
}

ordered_json ConfigurationFigures::json() const {
  ordered_json json = {{"name", title},
                       {"model", model},
                       {"precision", precision},
                       {"device", device},
                       {"load_s", rounded(load_s)},
                       {"memory",
                        {{"of", memory.of_device ? "device" : "process"},
                         {"rest_bytes", memory.rest_bytes},
                         {"peak_bytes", memory.peak_bytes}}}};
  json["warm_up_ms"] = ordered_json::array();
  for (const double took_ms : warm_up_ms_) json["warm_up_ms"].push_back(rounded(took_ms));
  json.update(times_json(all_));
  json["semantic_tokens_per_s"] =
      has_tokens ? json_of(tokens_per_s_.percentiles()) : ordered_json{{"count", 0}};
  for (const auto& [name, times] : texts_) {
    json["texts"][name] = {{"characters", times.characters}};
    json["texts"][name].update(times_json(times));
  }
  json["batch"] = {{"requests", batch_requests_},
                   {"elapsed_s", rounded(batch_s)},
                   {"requests_per_s", rounded(over(static_cast<double>(batch_requests_), batch_s))},
                   {"sound_s", rounded(batch_sound_s_)},
                   {"sound_s_per_s", rounded(over(batch_sound_s_, batch_s))}};
  json["sound_h_per_h"] = rounded(capacity());
  return json;
}

std::string ConfigurationFigures::lines() const {
  std::string text = concat("  loaded in ", decimal(load_s, 2), " s; memory of the ",
                            memory.of_device ? "GPU" : "process", ": ", megabytes(memory.rest_bytes),
                            " MB at rest, ", megabytes(memory.peak_bytes), " MB at peak\n");
  if (!warm_up_ms_.empty()) text += "  warm-up:";
  for (const double took_ms : warm_up_ms_) text += concat(' ', ms(took_ms), " ms");
  if (!warm_up_ms_.empty()) text += '\n';
  std::vector<std::vector<std::string>> rows = {
      {"  text", "characters", "RTF p50", "latency ms p50", "p95", "p99", "first audio ms p50"}};
  for (const auto& [name, times] : texts_) {
    const bench::Percentiles latency = times.latency_ms.percentiles();
    rows.push_back({"  " + name, std::to_string(times.characters),
                    decimal(times.real_time_factor.percentiles().p50, 3), ms(latency.p50), ms(latency.p95),
                    ms(latency.p99), ms(times.first_audio_ms.percentiles().p50)});
  }
  text += bench::aligned(rows);
  if (has_tokens)
    text += concat("  ", decimal(tokens_per_s_.percentiles().p50, 1), " semantic tokens/s (p50)\n");
  if (batch_requests_ > 0)
    text += concat("  ", batch_requests_, " in a row: ", decimal(batch_s, 2), " s, ",
                   decimal(over(static_cast<double>(batch_requests_), batch_s), 2), " requests/s, ",
                   decimal(over(batch_sound_s_, batch_s), 2), " s of sound a second\n");
  return text;
}

ordered_json json_of(const Spoken& spoken, size_t configuration) {
  const SpeechSummary& s = spoken.summary;
  return {{"configuration", configuration},
          {"phase", kPhases[static_cast<int>(spoken.phase)]},
          {"outcome", "completed"},
          {"text", spoken.text},
          {"characters", spoken.characters},
          {"due_s", rounded(spoken.due_s)},
          {"seed", s.seed},
          {"first_audio_ms", rounded(s.first_audio_s * 1e3)},
          {"latency_ms", rounded(s.total_s * 1e3)},
          {"sound_s", rounded(s.audio_s())},
          {"real_time_factor", rounded(s.real_time_factor())},
          {"frames", s.frames}};
}

std::string table_of(const std::vector<ConfigurationFigures>& figures) {
  std::vector<std::vector<std::string>> rows = {{"configuration", "RTF p50", "latency ms p50", "p95",
                                                 "MB at rest", "at peak", "hours of sound an hour"}};
  for (const ConfigurationFigures& each : figures) {
    const ordered_json json = each.json();
    const auto number = [&](const char* name, const char* share) { return json[name].value(share, 0.0); };
    rows.push_back({each.title, decimal(number("real_time_factor", "p50"), 3),
                    ms(number("latency_ms", "p50")), ms(number("latency_ms", "p95")),
                    megabytes(each.memory.rest_bytes), megabytes(each.memory.peak_bytes),
                    decimal(json["sound_h_per_h"], 2)});
  }
  return bench::aligned(rows);
}

}  // namespace shoal::suite
