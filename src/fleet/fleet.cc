#include "fleet/fleet.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <poll.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "fleet/probe.h"

namespace shoal::fleet {
namespace {

constexpr int kLook_ms = 50;         // child processes are asked so often whether they have ended
constexpr int kRefusesSettings = 2;  // exit code

bool is_given_up(const Process& process) { return process.watch().state() == WorkerState::given_up; }

}  // namespace

Fleet::Fleet(const FleetOptions& options)
    : options_(options),
      roster_(options.balancer ? options.balancer->ask : HostRoster::Ask()),
      rotation_(options.balancer ? options.balancer->let_in : Rotation::Tell()),
      began_us_(now_us()) {
  for (const WorkerPlan& plan : options.workers) workers_.push_back(made(plan, "base_port", options.command));
  if (!options.balancer) return;
  const auto command = [&in_front = *options.balancer](const WorkerPlan&) { return in_front.command; };
  balancer_ = made({.name = "balancer", .port = options.balancer->port}, "listen", command,
                   options.balancer->ready_socket);
  take(options.hosts);
}

std::unique_ptr<Process> Fleet::made(const WorkerPlan& plan, const char* setting,
                                     std::function<Command(const WorkerPlan&)> command,
                                     const std::string& ready_socket) const {
  if (const int error = error_of_port(plan.port); error != 0)
    fail(ErrorCode::invalid_argument, setting, ": port ", plan.port, " of ", plan.name,
         " cannot be used: ", std::strerror(error));
  return std::make_unique<Process>(options_.of_processes, plan, std::move(command), ready_socket);
}

std::vector<Process*> Fleet::processes() const {
  std::vector<Process*> all;
  for (const auto& worker : workers_) all.push_back(worker.get());
  if (balancer_) all.push_back(balancer_.get());
  return all;
}

void Fleet::run() {
  if (!options_.door.empty()) log(LogLevel::info, "the fleet answers for itself at ", options_.door);
  if (balancer_) start_balancer();
  while (!options_.should_end()) {
    start_next();
    wait();
    for (Process* process : processes()) look_after(*process);
    // Whoever is back gets requests before the next one leaves.
    for (const auto& worker : workers_)
      rotation_.update(worker->plan().name, worker->watch().state() == WorkerState::ready);
    look_after_hosts();
    if (options_.desk != nullptr) options_.desk->obey([this](const Order& order) { answer(order); });
    roll();
    if (options_.desk != nullptr) options_.desk->publish(status());
  }
}

void Fleet::look_after(Process& process) {
  if (const auto ended = process.look()) note_end(process, *ended);
  process.check();
  any_was_ready_ = any_was_ready_ || process.watch().was_ready();
}

void Fleet::end() {
  log(LogLevel::info, "the fleet ends: requests inside may end");
  if (options_.desk != nullptr) options_.desk->close();
  // It accepts nobody any more, and ends once its last answer has been sent.
  if (balancer_) balancer_->send(SIGUSR1);
  for (const auto& worker : workers_) worker->send(SIGTERM);
  const int64_t last_us = now_us() + options_.of_processes.grace_us;
  bool killed = false;
  while (std::ranges::any_of(processes(), &Process::runs)) {
    wait();
    for (Process* process : processes())
      if (const auto ended = process->look())
        log(LogLevel::info, process->plan().name, ": ended with ", to_words(*ended));
    if (killed || now_us() < last_us) continue;
    killed = true;
    log(LogLevel::warning, "workers that have not ended in time are killed");
    for (Process* process : processes()) process->send(SIGKILL);
  }
}

void Fleet::note_end(Process& process, const Ended& ended) {
  if (ended.exit_code == kRefusesSettings && !any_was_ready_ && &process != balancer_.get())
    fail(ErrorCode::invalid_argument, process.plan().name,
         " refuses its settings: ", without_program(process.last_line()));
  if (&process == balancer_.get() && ended.exit_code >= 0 && process.watch().restarts() == 0 &&
      !process.watch().was_ready())
    fail(ErrorCode::invalid_argument, "haproxy: ended at once with ", to_words(ended),
         process.last_line().empty() ? "" : ": ", printable(process.last_line()));
  process.note_end(ended);
  if (balancer_ && is_given_up(*balancer_))
    fail(ErrorCode::io, "the balancer has failed ", options_.of_processes.rules.most_failures,
         " times in a row");
  const bool serves_on = !hosts_.empty();
  if (!serves_on && std::ranges::all_of(workers_, [](const auto& worker) { return is_given_up(*worker); }))
    fail(ErrorCode::io, "every worker has failed ", options_.of_processes.rules.most_failures,
         " times in a row");
}

void Fleet::start_balancer() {
  balancer_->start();
  rotation_.balancer_started();
  roster_.balancer_started();
}

// Restarts that are due, and the first start of each worker, in order.
void Fleet::start_next() {
  const int64_t now = now_us();
  for (size_t i = 0; i < first_starts_; ++i)
    if (workers_[i]->watch().should_start(now)) workers_[i]->start();
  if (balancer_ && balancer_->watch().should_start(now)) start_balancer();
  if (first_starts_ > 0 && workers_[first_starts_ - 1]->watch().was_ready()) is_ready_ = true;
  if (first_starts_ == workers_.size()) return;
  if (first_starts_ > 0 && !is_ready_ && now - last_start_us_ < options_.stagger_us) return;
  workers_[first_starts_++]->start();
  last_start_us_ = now;
  is_ready_ = false;
}

void Fleet::wait() const {
  std::vector<pollfd> events;
  for (const Process* process : processes()) process->watch_for(events);
  for (const auto& host : hosts_) host->watch_for(events);
  poll(events.data(), events.size(), kLook_ms);
}

}  // namespace shoal::fleet
