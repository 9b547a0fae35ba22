#include "fleet/supervisor.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "fleet/log_lines.h"
#include "fleet/probe.h"
#include "fleet/rolling.h"

namespace shoal::fleet {
namespace {

constexpr int64_t kCheckTimeout_us = 2'000'000;
constexpr int kLook_ms = 50;         // child processes are asked so often whether they have ended
constexpr int kRefusesSettings = 2;  // exit code
constexpr double kSecond_us = 1e6;

// Programs begin their errors with their name, and so do we.
std::string_view without_prefix(std::string_view error) {
  constexpr std::string_view kPrefix = "shoal: ";
  return error.substr(error.starts_with(kPrefix) ? kPrefix.size() : 0);
}

// A process of the fleet: a worker, or the balancer.
class Worker {
 public:
  Worker(const FleetOptions& options, const WorkerPlan& plan,
         std::function<Command(const WorkerPlan&)> command)
      : options_(options), plan_(plan), command_(std::move(command)), watch_(options.rules) {}

  const WorkerPlan& plan() const { return plan_; }
  const WorkerWatch& watch() const { return watch_; }
  bool runs() const { return child_ != nullptr; }

  void start() {
    child_ = std::make_unique<Child>(command_(plan_));
    lines_ = {};
    watch_.started(now_us());
    log(LogLevel::info, plan_.name, ": started, pid ", child_->pid(), ", port ", plan_.port);
  }

  void send(int signal) {
    if (child_) child_->send(signal);
  }

  // Adds what poll() shall wait for.
  void watch_for(std::vector<pollfd>& events) const {
    if (child_ && reads_) events.push_back({.fd = child_->output(), .events = POLLIN});
    if (probe_.socket() >= 0) events.push_back({.fd = probe_.socket(), .events = probe_.events()});
  }

  // How the process ended, if it did.
  std::optional<Ended> look() {
    if (!child_) return std::nullopt;
    const std::optional<Ended> ended = child_->poll();
    read_output();
    if (!ended) return std::nullopt;
    for (const std::string& line : lines_.finish()) options_.print(named_line(plan_.name, line));
    child_.reset();
    probe_.end();
    reads_ = true;
    return ended;
  }

  // It answers what is inside, ends, and starts again.
  void drain() {
    log(LogLevel::info, plan_.name, ": ends, and starts again");
    probe_.end();
    send(SIGTERM);
    watch_.asked_to_end(now_us() + options_.grace_us);
  }

  void check() {
    const int64_t now = now_us();
    if (!probe_.is_under_way() && watch_.should_check(now)) probe_.begin(plan_.port, now + kCheckTimeout_us);
    if (probe_.is_under_way()) take(probe_.go_on(now));
    if (!watch_.hangs(now) && !watch_.is_overdue(now)) return;
    log(LogLevel::error, plan_.name,
        watch_.hangs(now) ? ": gives no answer; it is killed" : ": has not ended in time; it is killed");
    send(SIGKILL);
    watch_.killed();
  }

  void note_end(const Ended& ended) {
    const int failures = watch_.failures();
    watch_.ended(now_us());
    if (watch_.failures() == failures)
      return log(LogLevel::info, plan_.name, ": ended with ", to_words(ended));
    if (watch_.state() == WorkerState::given_up)
      log(LogLevel::error, plan_.name, ": ended with ", to_words(ended), ", ", watch_.failures(),
          " times in a row: given up");
    else
      log(LogLevel::warning, plan_.name, ": ended with ", to_words(ended), "; restart ", watch_.failures(),
          " of ", options_.rules.most_failures - 1, " in ",
          static_cast<double>(watch_.pause_us()) / kSecond_us, " s");
  }

  const std::string& last_line() const { return lines_.last(); }

 private:
  void read_output() {
    char bytes[16 * 1024];
    constexpr int kMostReads = 64;  // a worker that writes without end must not keep us from the others
    for (int i = 0; i < kMostReads && reads_; ++i) {
      const ssize_t count = read(child_->output(), bytes, sizeof bytes);
      if (count == 0) reads_ = false;
      if (count <= 0) return;
      for (const std::string& line : lines_.add({bytes, static_cast<size_t>(count)}))
        options_.print(named_line(plan_.name, line));
    }
  }

  void take(std::optional<CheckResult> result) {
    if (!result) return;
    probe_.end();
    const WorkerState before = watch_.state();
    watch_.checked(*result, now_us());
    if (watch_.state() != before) log(LogLevel::info, plan_.name, ": ", name_of(watch_.state()));
  }

  const FleetOptions& options_;
  const WorkerPlan plan_;
  const std::function<Command(const WorkerPlan&)> command_;
  WorkerWatch watch_;
  std::unique_ptr<Child> child_;
  Probe probe_;
  LogLines lines_;
  bool reads_ = true;  // its output has not ended
};

class Fleet {
 public:
  explicit Fleet(const FleetOptions& options) : options_(options) {
    for (const WorkerPlan& plan : options.workers) add(plan, "base_port", options.command);
    if (!options.balancer) return;
    const auto command = [&in_front = *options.balancer](const WorkerPlan&) { return in_front.command; };
    balancer_ = &add({.name = "balancer", .port = options.balancer->port}, "listen", command);
  }

  void run() {
    if (balancer_ != nullptr) balancer_->start();
    while (!options_.should_end()) {
      start_next();
      wait();
      for (const auto& process : processes_) {
        if (const auto ended = process->look()) note_end(*process, *ended);
        process->check();
        any_was_ready_ = any_was_ready_ || process->watch().was_ready();
      }
      roll();
    }
  }

  void end() {
    log(LogLevel::info, "the fleet ends: requests inside may end");
    // It accepts nobody any more, and ends once its last answer has been sent.
    if (balancer_ != nullptr) balancer_->send(SIGUSR1);
    for (const auto& process : processes_)
      if (process.get() != balancer_) process->send(SIGTERM);
    const int64_t last_us = now_us() + options_.grace_us;
    bool killed = false;
    while (std::ranges::any_of(processes_, [](const auto& process) { return process->runs(); })) {
      wait();
      for (const auto& process : processes_)
        if (const auto ended = process->look())
          log(LogLevel::info, process->plan().name, ": ended with ", to_words(*ended));
      if (killed || now_us() < last_us) continue;
      killed = true;
      log(LogLevel::warning, "workers that have not ended in time are killed");
      for (const auto& process : processes_) process->send(SIGKILL);
    }
  }

 private:
  Worker& add(const WorkerPlan& plan, const char* setting,
              std::function<Command(const WorkerPlan&)> command) {
    if (const int error = error_of_port(plan.port); error != 0)
      fail(ErrorCode::invalid_argument, setting, ": port ", plan.port, " of ", plan.name,
           " cannot be used: ", std::strerror(error));
    processes_.push_back(std::make_unique<Worker>(options_, plan, std::move(command)));
    return *processes_.back();
  }

  void note_end(Worker& worker, const Ended& ended) {
    if (ended.exit_code == kRefusesSettings && !any_was_ready_ && &worker != balancer_)
      fail(ErrorCode::invalid_argument, worker.plan().name,
           " refuses its settings: ", without_prefix(worker.last_line()));
    worker.note_end(ended);
    const auto is_given_up = [](const Worker& other) {
      return other.watch().state() == WorkerState::given_up;
    };
    if (balancer_ != nullptr && is_given_up(*balancer_))
      fail(ErrorCode::io, "the balancer has failed ", options_.rules.most_failures, " times in a row");
    if (std::ranges::all_of(
            processes_, [&](const auto& other) { return other.get() == balancer_ || is_given_up(*other); }))
      fail(ErrorCode::io, "every worker has failed ", options_.rules.most_failures, " times in a row");
  }

  // Restarts that are due, and the first start of each worker, in order.
  void start_next() {
    const int64_t now = now_us();
    for (size_t i = 0; i < first_starts_; ++i)
      if (processes_[i]->watch().should_start(now)) processes_[i]->start();
    if (balancer_ != nullptr && balancer_->watch().should_start(now)) balancer_->start();
    if (first_starts_ > 0 && processes_[first_starts_ - 1]->watch().was_ready()) is_ready_ = true;
    if (first_starts_ == options_.workers.size()) return;
    if (first_starts_ > 0 && !is_ready_ && now - last_start_us_ < options_.stagger_us) return;
    processes_[first_starts_++]->start();
    last_start_us_ = now;
    is_ready_ = false;
  }

  // The balancer sees by itself that a worker leaves, but after requests that come back with 503.
  void let_in(Worker& worker, bool in) {
    if (balancer_ == nullptr) return;
    if (!options_.balancer->let_in(worker.plan().name, in))
      log(LogLevel::warning, "the balancer was not told that ", worker.plan().name,
          in ? " is back" : " leaves");
    if (in)
      std::erase(kept_out_, &worker);
    else
      kept_out_.push_back(&worker);
  }

  void let_in_who_is_back() {
    const std::vector<Worker*> kept_out = kept_out_;
    for (Worker* worker : kept_out)
      if (worker->watch().state() == WorkerState::ready) let_in(*worker, true);
  }

  void roll() {
    let_in_who_is_back();
    if (options_.should_roll() && !rolling_) {
      log(LogLevel::info, "rolling restart: one worker after the other");
      rolling_.emplace(worker_states());
    }
    if (!rolling_) return;
    if (const std::optional<size_t> next = rolling_->next(worker_states())) {
      // The others are ready, and the balancer may not have seen it yet.
      for (const auto& process : processes_)
        if (process.get() != balancer_) let_in(*process, process != processes_[*next]);
      processes_[*next]->drain();
    }
    if (rolling_->outcome() == RollingRestart::Outcome::goes_on) return;
    if (rolling_->outcome() == RollingRestart::Outcome::done)
      log(LogLevel::info, "rolling restart: done");
    else
      log(LogLevel::error,
          "rolling restart: a worker failed; those whose turn had not come go on as they were");
    rolling_.reset();
  }

  std::vector<RollingRestart::Worker> worker_states() const {
    std::vector<RollingRestart::Worker> states;
    for (const auto& process : processes_)
      if (process.get() != balancer_)
        states.push_back({process->watch().state(), process->watch().failures()});
    return states;
  }

  void wait() const {
    std::vector<pollfd> events;
    for (const auto& process : processes_) process->watch_for(events);
    poll(events.data(), events.size(), kLook_ms);
  }

  const FleetOptions& options_;
  std::vector<std::unique_ptr<Worker>> processes_;  // the workers, then the balancer
  Worker* balancer_ = nullptr;
  std::optional<RollingRestart> rolling_;
  std::vector<Worker*> kept_out_;  // by the balancer
  size_t first_starts_ = 0;        // workers that have had theirs
  int64_t last_start_us_ = 0;
  bool is_ready_ = false;  // the last of them has been ready
  bool any_was_ready_ = false;
};

}  // namespace

void run_fleet(const FleetOptions& options) {
  Fleet fleet(options);
  try {
    fleet.run();
  } catch (const std::exception&) {
    fleet.end();
    throw;
  }
  fleet.end();
}

}  // namespace shoal::fleet
