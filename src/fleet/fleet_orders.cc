#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "fleet/fleet.h"

namespace shoal::fleet {

size_t Fleet::named(const std::string& name) const {
  state_of(name);
  const auto is_it = [&](const auto& worker) { return worker->plan().name == name; };
  const auto found = std::ranges::find_if(workers_, is_it);
  if (found == workers_.end())
    fail(ErrorCode::invalid_argument, "worker: ", name, " is of another machine; restart it there");
  return static_cast<size_t>(found - workers_.begin());
}

WorkerState Fleet::state_of(const std::string& name) const {
  for (const WorkerStatus& worker : status().workers)
    if (worker.name == name) return worker.state;
  fail(ErrorCode::not_found, "worker: there is no \"", printable(name), "\"; see /v1/workers");
}

std::vector<size_t> Fleet::everyone() const {
  std::vector<size_t> all(workers_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

std::vector<RollingRestart::Worker> Fleet::worker_states() const {
  std::vector<RollingRestart::Worker> states;
  for (const auto& worker : workers_) states.push_back({worker->watch().state(), worker->watch().failures()});
  return states;
}

// Whoever asked sees what came of it.
void Fleet::answer(const Order& order) {
  obey(order);
  options_.desk->publish(status());
}

void Fleet::obey(const Order& order) {
  switch (order.what) {
    case Order::What::drain:
      return drain(order.worker);
    case Order::What::resume:
      return resume(order.worker);
    case Order::What::restart:
      return begin_rolling("restart", order.worker.empty() ? everyone() : std::vector{named(order.worker)});
    case Order::What::reload: {
      if (!options_.change) fail(ErrorCode::unsupported, "this fleet cannot change its settings");
      const Settings before = settings_;
      Settings settings = order.settings;
      settings.insert(before.begin(), before.end());
      change(settings);
      try {
        return begin_rolling("reload", everyone(), before);
      } catch (const Error&) {
        change(before);
        throw;
      }
    }
  }
}

void Fleet::change(const Settings& settings) {
  options_.change(settings);
  settings_ = settings;
}

void Fleet::drain(const std::string& name) {
  if (rolling_) fail(ErrorCode::already_exists, "a rolling ", rolling_->what, " is under way");
  const WorkerState state = state_of(name);
  const FleetStatus now = status();
  const auto speaks_on = [&](const WorkerStatus& other) {
    return other.name != name && other.gets_requests && other.state == WorkerState::ready;
  };
  if (std::ranges::none_of(now.workers, speaks_on))
    fail(ErrorCode::already_exists, "worker: no other worker gets requests; resume or restart one first");
  log(LogLevel::info, name, ": gets no more requests, as asked");
  rotation_.drain(name);
  rotation_.update(name, state == WorkerState::ready);
}

void Fleet::resume(const std::string& name) {
  const WorkerState state = state_of(name);
  log(LogLevel::info, name, ": gets requests again, as asked");
  rotation_.resume(name);
  rotation_.update(name, state == WorkerState::ready);
}

void Fleet::begin_rolling(const char* what, std::vector<size_t> turns, std::optional<Settings> before) {
  if (rolling_) fail(ErrorCode::already_exists, "a rolling ", rolling_->what, " is under way");
  if (workers_.empty())
    fail(ErrorCode::invalid_argument, "all workers of this fleet are of other machines; ", what,
         " them there");
  if (first_starts_ < workers_.size()) fail(ErrorCode::already_exists, "the fleet is still starting");
  const FleetStatus now = status();
  const auto takes_away = [&](size_t index) {  // while another, or a host, gets no requests
    const auto is_other = [&](const WorkerStatus& worker) {
      return worker.name != workers_[index]->plan().name && !worker.gets_requests;
    };
    return workers_[index]->watch().state() == WorkerState::ready &&
           std::ranges::any_of(now.workers, is_other);
  };
  if (std::ranges::any_of(turns, takes_away))
    fail(ErrorCode::already_exists,
         "a worker is drained; resume it first, or fewer than all but one are left");
  const auto blocks = [&](size_t index) {
    return workers_[index]->watch().state() == WorkerState::given_up && std::ranges::count(turns, index) == 0;
  };
  if (std::ranges::any_of(everyone(), blocks))
    fail(ErrorCode::already_exists, "a worker was given up; restart that one first, or all");
  log(LogLevel::info, "rolling ", what, ": one worker after the other");
  rolling_.emplace(Rolling{what, RollingRestart(worker_states(), std::move(turns)), std::move(before)});
  note_rolling("under way");
}

void Fleet::roll() {
  if (!rolling_ && first_starts_ == workers_.size() && options_.should_roll() && !workers_.empty()) {
    try {
      begin_rolling("restart", everyone());
    } catch (const Error& error) {
      log(LogLevel::error, "rolling restart: ", error.message());
    }
  }
  if (!rolling_) return;
  if (const std::optional<size_t> next = rolling_->turns.next(worker_states())) {
    for (const auto& worker : workers_)
      if (worker->watch().state() == WorkerState::ready && worker != workers_[*next])
        rotation_.confirm(worker->plan().name);
    rotation_.leaves(workers_[*next]->plan().name);
    workers_[*next]->restart();
    note_rolling("under way");
  }
  if (rolling_->turns.outcome() != RollingRestart::Outcome::goes_on) end_rolling();
}

void Fleet::end_rolling() {
  const bool is_done = rolling_->turns.outcome() == RollingRestart::Outcome::done;
  note_rolling(is_done ? "done" : "failed");
  const Rolling ended = std::move(*rolling_);
  rolling_.reset();
  if (is_done) return log(LogLevel::info, "rolling ", ended.what, ": done");
  log(LogLevel::error, "rolling ", ended.what,
      ": a worker failed; those whose turn had not come go on as they were");
  if (!ended.before) return;
  change(*ended.before);
  rolling_.emplace(Rolling{"rollback", RollingRestart(worker_states(), ended.turns.had_turn()), {}});
  log(LogLevel::info, "rolling rollback: the settings before, for those whose turn had come");
  note_rolling("under way");
}

void Fleet::note_rolling(const char* outcome) {
  last_rolling_ = RollingStatus{.what = rolling_->what, .outcome = outcome, .turns = {}};
  for (const size_t index : rolling_->turns.had_turn())
    last_rolling_->turns.push_back(workers_[index]->plan().name);
}

FleetStatus Fleet::status() const {
  constexpr double kSecond_us = 1e6;
  const auto seconds_since = [now = now_us()](int64_t then) {
    return static_cast<double>(now - then) / kSecond_us;
  };
  FleetStatus status{.workers = {}, .rolling = last_rolling_, .uptime_s = seconds_since(began_us_)};
  for (const auto& worker : workers_) {
    const WorkerPlan& plan = worker->plan();
    status.workers.push_back({.name = plan.name,
                              .device = plan.gpu ? concat("cuda:", *plan.gpu) : "cpu",
                              .port = plan.port,
                              .pid = worker->pid(),
                              .state = worker->watch().state(),
                              .gets_requests = !rotation_.is_drained(plan.name),
                              .restarts = worker->watch().restarts(),
                              .failures = worker->watch().failures(),
                              .uptime_s = worker->runs() ? seconds_since(worker->started_us()) : 0,
                              .last_error = worker->last_error()});
  }
  for (const auto& host : hosts_)
    status.workers.push_back({.name = host->plan().name,
                              .device = {},
                              .host = host->plan().address.host,
                              .port = host->plan().address.port,
                              .state = host->state(),
                              .gets_requests = !rotation_.is_drained(host->plan().name),
                              .last_error = host->last_error()});
  if (balancer_) {
    status.balancer_pid = balancer_->pid();
    status.balancer_restarts = balancer_->watch().restarts();
  }
  return status;
}

}  // namespace shoal::fleet
