// Runs the workers of a fleet until it is asked to end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/child.h"
#include "fleet/plan.h"
#include "fleet/watch.h"

namespace shoal::fleet {

struct FleetOptions {
  std::vector<WorkerPlan> workers;
  std::function<Command(const WorkerPlan&)> command;  // of one worker
  // In front of the workers: started before them and ended after them. It answers GET /ready, too.
  struct InFront {
    int port = 0;
    Command command;
    // Whether the worker of this name gets requests; false if that could not be said.
    std::function<bool(const std::string& name, bool in)> let_in;
  };
  std::optional<InFront> balancer;
  int64_t stagger_us = 60'000'000;  // a worker starts when the one before is ready, or so long after it
  int64_t grace_us = 35'000'000;    // from SIGTERM to SIGKILL
  WatchRules rules;
  std::function<bool()> should_end;
  std::function<bool()> should_roll = [] {
    return false;
  };  // whether a rolling restart was asked for since the last call
  std::function<void(std::string_view)> print;  // one line of a worker, named
};

// Returns once every worker has ended; none is left when it throws either. Throws Error(invalid_argument): a
// port is taken, or a worker refused its settings before any was ready (its last line is the message);
// Error(io): every worker, or the balancer, was given up.
void run_fleet(const FleetOptions& options);

}  // namespace shoal::fleet
