// A process that is kept running: started, asked for its health, started again when it ends or hangs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/child.h"
#include "fleet/log_lines.h"
#include "fleet/plan.h"
#include "fleet/probe.h"
#include "fleet/watch.h"

struct pollfd;

namespace shoal::fleet {

// Programs begin their errors with their name, and so do we.
std::string_view without_program(std::string_view error);

struct ProcessOptions {
  int64_t grace_us = 35'000'000;  // from SIGTERM to SIGKILL
  WatchRules rules;
  std::function<void(std::string_view)> print;  // one line of its output, named
};

// A worker, or the balancer. Nothing waits: whoever owns it calls look() and check() again and again.
class Process {
 public:
  // The options outlive it.
  // ready_socket: path of a socket at which it answers GET /ready; none: at its port.
  Process(const ProcessOptions& options, WorkerPlan plan, std::function<Command(const WorkerPlan&)> command,
          std::string ready_socket = {});

  const WorkerPlan& plan() const { return plan_; }
  const WorkerWatch& watch() const { return watch_; }
  bool runs() const { return child_ != nullptr; }
  pid_t pid() const { return child_ ? child_->pid() : 0; }
  int64_t started_us() const { return started_us_; }
  const std::string& last_line() const { return lines_.last(); }  // of its output
  const std::string& last_error() const { return last_error_; }   // of all its processes; empty: none

  // Throws Error(io) if the program cannot be started.
  void start();
  void send(int signal);
  // It answers what is inside, ends, and starts again; if it does not run, it starts.
  void restart();

  // Adds what poll() shall wait for.
  void watch_for(std::vector<pollfd>& events) const;
  // How the process ended, if it did; told to note_end().
  std::optional<Ended> look();
  void note_end(const Ended& ended);
  // Asks for its health when that is due, and kills it if it hangs.
  void check();

 private:
  void read_output();
  void take(std::optional<CheckResult> result);

  const ProcessOptions& options_;
  const WorkerPlan plan_;
  const std::function<Command(const WorkerPlan&)> command_;
  const Target target_;
  WorkerWatch watch_;
  std::unique_ptr<Child> child_;
  Probe probe_;
  LogLines lines_;
  int64_t started_us_ = 0;
  std::string last_error_, reason_of_kill_;
  bool reads_ = true;  // its output has not ended
};

}  // namespace shoal::fleet
