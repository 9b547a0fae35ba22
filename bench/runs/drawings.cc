#include "bench/runs/drawings.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "bench/measure/samples.h"

namespace shoal::runs {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostPoints = 200, kMostOthers = 500, kMostCompleted = 2'000;

struct Times {
  std::vector<double> first_audible_ms, latency_ms;
};

ordered_json distribution(std::vector<double>& values) {
  if (values.empty()) return ordered_json::object();
  std::sort(values.begin(), values.end());
  ordered_json box = ordered_json::array(), curve = ordered_json::array();
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) box.push_back(bench::percentile(values, share));
  const size_t points = std::min(values.size(), kMostPoints);
  for (size_t i = 1; i <= points; ++i) {
    const size_t rank = i * values.size() / points;  // 1 to all
    const double share = static_cast<double>(rank) / static_cast<double>(values.size());
    curve.push_back({values[rank - 1], share});
  }
  return {{"box", box}, {"curve", curve}};
}

ordered_json json_of(Times& times) {
  return {{"latency_ms", distribution(times.latency_ms)},
          {"first_audible_ms", distribution(times.first_audible_ms)}};
}

void add(Times& times, const Request& request) {
  if (request.latency_ms) times.latency_ms.push_back(*request.latency_ms);
  if (request.first_audible_ms) times.first_audible_ms.push_back(*request.first_audible_ms);
}

ordered_json optional_json(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

bool counts(const Request& request) { return request.outcome == "completed" && !request.slow; }

// Only the samples of a suite are compared; load has no phases.
bool is_sample(const Request& request) { return request.phase.empty() || request.phase == "sample"; }

ordered_json timeline_of(std::span<const Request> requests) {
  const auto completed = static_cast<size_t>(std::ranges::count_if(requests, counts));
  const size_t every = std::max<size_t>(1, (completed + kMostCompleted - 1) / kMostCompleted);
  ordered_json timeline = ordered_json::array();
  size_t others = 0, seen = 0;
  for (const Request& r : requests) {
    if (counts(r) ? seen++ % every != 0 : others++ >= kMostOthers) continue;
    timeline.push_back({r.group, r.due_s, optional_json(r.first_audible_ms), optional_json(r.latency_ms),
                        r.slow ? "slow" : r.outcome});
  }
  return timeline;
}

}  // namespace

ordered_json drawings_of(const StoredRun& run) {
  const char* const groups = run.summary.contains("levels") ? "levels" : "configurations";
  const size_t count = run.summary[groups].size();
  std::vector<Times> all(count);
  std::vector<std::map<std::string, Times>> by_text(count);
  for (const Request& request : run.requests) {
    const auto group = static_cast<size_t>(request.group);
    if (group >= count || !counts(request) || !is_sample(request)) continue;
    add(all[group], request);
    if (!request.text.empty()) add(by_text[group][request.text], request);
  }
  ordered_json json = {{"groups", ordered_json::array()}};
  for (size_t i = 0; i < count; ++i) {
    ordered_json group = json_of(all[i]);
    for (auto& [text, times] : by_text[i]) group["texts"][text] = json_of(times);
    json["groups"].push_back(std::move(group));
  }
  json["timeline"] = timeline_of(run.requests);
  json["requests"] = run.requests.size();
  return json;
}

}  // namespace shoal::runs
