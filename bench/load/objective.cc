#include "bench/load/objective.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/printable.h"

namespace shoal::load {
namespace {

using Value = std::optional<double>;

double underruns_of(const RequestFigures& figures, size_t buffer) {
  return static_cast<double>(figures.players[buffer].underruns);
}

struct Measure {
  std::string_view name;
  Value (*of)(const RequestFigures&);
};

constexpr auto kMeasures = std::to_array<Measure>({
    {"first_byte_ms", [](const RequestFigures& f) { return f.first_byte_ms; }},
    {"first_sound_ms", [](const RequestFigures& f) { return f.first_sound_ms; }},
    {"ttfa_ms", [](const RequestFigures& f) { return f.first_audible_ms; }},
    {"latency_ms", [](const RequestFigures& f) { return Value(f.latency_ms); }},
    {"rtf", [](const RequestFigures& f) { return f.real_time_factor; }},
    {"gap_ms", [](const RequestFigures& f) { return Value(f.longest_gap_ms); }},
    {"underruns", [](const RequestFigures& f) { return Value(underruns_of(f, kUsualBuffer)); }},
    {"underruns_50ms", [](const RequestFigures& f) { return Value(underruns_of(f, 0)); }},
    {"underruns_200ms", [](const RequestFigures& f) { return Value(underruns_of(f, 2)); }},
});

const Measure* measure_of(std::string_view name) {
  const auto found =
      std::find_if(kMeasures.begin(), kMeasures.end(), [&](const Measure& m) { return m.name == name; });
  return found == kMeasures.end() ? nullptr : &*found;
}

Objective parse_objective(std::string_view part) {
  const size_t equals = std::min(part.find('='), part.size());
  Objective objective{.name = std::string(part.substr(0, equals))};
  const std::string_view number = part.substr(std::min(equals + 1, part.size()));
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), objective.most);
  if (measure_of(objective.name) == nullptr || problem != std::errc() ||
      end != number.data() + number.size() || !(objective.most >= 0))
    fail(ErrorCode::invalid_argument, "slo: expected NAME=NUMBER with a name of ", names_of_objectives(),
         ", got \"", printable(part), "\"");
  return objective;
}

}  // namespace

std::vector<Objective> parse_objectives(std::string_view text) {
  std::vector<Objective> objectives;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    objectives.push_back(parse_objective(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return objectives;
}

std::string names_of_objectives() {
  std::string names;
  for (const Measure& measure : kMeasures) names += concat(names.empty() ? "" : ", ", measure.name);
  return names;
}

bool keeps(const std::vector<Objective>& objectives, const RequestRecord& record,
           const RequestFigures& figures) {
  if (record.outcome != Outcome::completed) return false;
  return std::all_of(objectives.begin(), objectives.end(), [&](const Objective& objective) {
    const Value value = measure_of(objective.name)->of(figures);
    return value && *value <= objective.most;
  });
}

}  // namespace shoal::load
