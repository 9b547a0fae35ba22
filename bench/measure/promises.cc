#include "bench/measure/promises.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "bench/measure/table.h"

namespace shoal::bench {
namespace {

constexpr double kLatencyGoal_s = 5, kSuccessGoal = 99.9, kUsersGoal = 10;

struct BatchGoal {
  int users;
  double throughput, added_latency_ms;
};
constexpr std::array kBatchGoals = {BatchGoal{2, 1.8, 100}, BatchGoal{4, 3.2, 200}, BatchGoal{8, 5, 400}};

std::string asked_of(const JudgedLevel& level) {
  if (level.open_loop()) return concat(level.rate_per_s, " requests/s");
  return concat(level.users, level.users == 1 ? " user" : " users");
}

// Where nothing was completed no time can be kept.
double seconds_or_never(const JudgedLevel& level, double seconds) {
  return level.completed > 0 ? seconds : std::numeric_limits<double>::infinity();
}

// The users of the largest closed loop without waiting: within the latency goal and without underruns.
double users_served(std::span<const JudgedLevel> levels) {
  int users = 0;
  for (const JudgedLevel& level : levels) {
    const bool served = level.completed > 0 && !level.ran_dry && level.completed == level.asked &&
                        level.latency_p95_s < kLatencyGoal_s;
    if (served && !level.open_loop()) users = std::max(users, level.users);
  }
  return users;
}

double success_percent(std::span<const JudgedLevel> levels) {
  int64_t asked = 0, completed = 0;
  for (const JudgedLevel& level : levels) {
    asked += level.asked;
    completed += level.completed;
  }
  return asked > 0 ? 100 * static_cast<double>(completed) / static_cast<double>(asked) : 0;
}

}  // namespace

std::vector<Scaling> scaling_of(std::span<const JudgedLevel> levels) {
  std::vector<Scaling> scaling;
  for (const JudgedLevel& level : levels) {
    const double first = levels[0].audio_s_per_s;
    scaling.push_back({.throughput = first > 0 ? level.audio_s_per_s / first : 0,
                       .added_latency_s = level.latency_p50_s - levels[0].latency_p50_s});
  }
  return scaling;
}

std::vector<Promise> promises_of(std::span<const JudgedLevel> levels) {
  std::vector<Promise> promises;
  if (levels.empty()) return promises;
  const std::vector<Scaling> scaling = scaling_of(levels);
  const bool from_one = !levels[0].open_loop() && levels[0].users == 1;
  for (size_t i = 0; i < levels.size(); ++i) {
    const JudgedLevel& level = levels[i];
    const std::string load = asked_of(level);
    promises.push_back({.what = load + ": 95 % of requests end within",
                        .unit = "s",
                        .goal = kLatencyGoal_s,
                        .measured = seconds_or_never(level, level.latency_p95_s)});
    const auto goal = std::ranges::find(kBatchGoals, level.users, &BatchGoal::users);
    if (!from_one || level.open_loop() || goal == kBatchGoals.end()) continue;
    promises.push_back({.what = load + ": throughput of one, times",
                        .unit = "x",
                        .goal = goal->throughput,
                        .at_least = true,
                        .measured = scaling[i].throughput});
    promises.push_back({.what = load + ": added to the median request",
                        .unit = "ms",
                        .goal = goal->added_latency_ms,
                        .measured = seconds_or_never(level, scaling[i].added_latency_s) * 1e3});
  }
  promises.push_back({.what = "requests that succeed",
                      .unit = "%",
                      .goal = kSuccessGoal,
                      .at_least = true,
                      .measured = success_percent(levels)});
  const bool asked_ten = std::ranges::any_of(
      levels, [](const JudgedLevel& level) { return !level.open_loop() && level.users >= kUsersGoal; });
  if (asked_ten) {
    promises.push_back({.what = "users served at once, none of them running dry",
                        .unit = "",
                        .goal = kUsersGoal,
                        .at_least = true,
                        .measured = users_served(levels)});
  }
  return promises;
}

std::string promise_table(std::span<const Promise> promises) {
  std::vector<std::vector<std::string>> rows = {{"promise", "goal", "measured", "kept"}};
  for (const Promise& promise : promises) {
    const std::string sign = promise.at_least ? ">= " : "<= ";
    rows.push_back({promise.what, sign + decimal(promise.goal, 1) + promise.unit,
                    decimal(promise.measured, 2) + promise.unit, promise.kept() ? "yes" : "NO"});
  }
  return aligned(rows);
}

}  // namespace shoal::bench
