#include "bench/engine/promises.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace shoal::bench {
namespace {

constexpr double kLatencyGoal_s = 5, kSuccessGoal = 99.9, kUsersGoal = 10;

struct BatchGoal {
  int users;
  double throughput, added_latency_ms;
};
constexpr std::array kBatchGoals = {BatchGoal{2, 1.8, 100}, BatchGoal{4, 3.2, 200}, BatchGoal{8, 5, 400}};

std::string asked_of(const LevelPlan& plan) {
  if (plan.open_loop()) return concat(plan.rate_per_s, " requests/s");
  return concat(plan.users, plan.users == 1 ? " user" : " users");
}

// The users of the largest closed loop without waiting: within the latency goal and without underruns.
double users_served(std::span<const LevelFigures> levels) {
  int users = 0;
  for (const LevelFigures& level : levels) {
    const bool served = level.requests.completed > 0 && level.streams_with_underruns == 0 &&
                        level.requests.completed == level.requests.submitted &&
                        level.latency_s.p95 < kLatencyGoal_s;
    if (served && !level.plan.open_loop()) users = std::max(users, level.plan.users);
  }
  return users;
}

double success_percent(std::span<const LevelFigures> levels) {
  int64_t asked = 0, completed = 0;
  for (const LevelFigures& level : levels) {
    asked += level.requests.submitted - level.requests.cancelled;
    completed += level.requests.completed;
  }
  return asked > 0 ? 100 * static_cast<double>(completed) / static_cast<double>(asked) : 0;
}

}  // namespace

std::vector<Scaling> scaling_of(std::span<const LevelFigures> levels) {
  std::vector<Scaling> scaling;
  for (const LevelFigures& level : levels) {
    const double first = levels[0].busy.audio_s_per_s;
    scaling.push_back({.throughput = first > 0 ? level.busy.audio_s_per_s / first : 0,
                       .added_latency_s = level.latency_s.p50 - levels[0].latency_s.p50});
  }
  return scaling;
}

std::vector<Promise> promises_of(std::span<const LevelFigures> levels) {
  std::vector<Promise> promises;
  if (levels.empty()) return promises;
  const std::vector<Scaling> scaling = scaling_of(levels);
  const bool from_one = !levels[0].plan.open_loop() && levels[0].plan.users == 1;
  for (size_t i = 0; i < levels.size(); ++i) {
    const LevelFigures& level = levels[i];
    const std::string load = asked_of(level.plan);
    promises.push_back({.what = load + ": 95 % of requests end within",
                        .unit = "s",
                        .goal = kLatencyGoal_s,
                        .measured = level.latency_s.p95});
    const auto goal = std::ranges::find(kBatchGoals, level.plan.users, &BatchGoal::users);
    if (!from_one || level.plan.open_loop() || goal == kBatchGoals.end()) continue;
    promises.push_back({.what = load + ": throughput of one, times",
                        .unit = "x",
                        .goal = goal->throughput,
                        .at_least = true,
                        .measured = scaling[i].throughput});
    promises.push_back({.what = load + ": added to the median request",
                        .unit = "ms",
                        .goal = goal->added_latency_ms,
                        .measured = scaling[i].added_latency_s * 1e3});
  }
  promises.push_back({.what = "requests that succeed",
                      .unit = "%",
                      .goal = kSuccessGoal,
                      .at_least = true,
                      .measured = success_percent(levels)});
  const bool asked_ten = std::ranges::any_of(levels, [](const LevelFigures& level) {
    return !level.plan.open_loop() && level.plan.users >= kUsersGoal;
  });
  if (asked_ten) {
    promises.push_back({.what = "users served at once, none of them running dry",
                        .unit = "",
                        .goal = kUsersGoal,
                        .at_least = true,
                        .measured = users_served(levels)});
  }
  return promises;
}

}  // namespace shoal::bench
