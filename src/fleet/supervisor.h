// Runs the workers of a fleet until it is asked to end.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fleet/desk.h"
#include "fleet/host_roster.h"
#include "fleet/plan.h"
#include "fleet/process.h"
#include "fleet/rotation.h"

namespace shoal::fleet {

struct FleetOptions {
  std::vector<WorkerPlan> workers;
  std::function<Command(const WorkerPlan&)> command;  // of one worker
  // In front of the workers: started before them and ended after them.
  struct InFront {
    int port = 0;
    std::string ready_socket;  // path, where it answers GET /ready
    Command command;
    Rotation::Tell let_in;
    HostRoster::Ask ask;  // its runtime socket
    // For its next process. None: no hosts.
    std::function<void(const std::vector<HostPlan>&)> remember_hosts;
  };
  std::optional<InFront> balancer;
  std::vector<HostPlan> hosts;  // behind the balancer, too
  // The list of hosts, if it was read again since the last call.
  std::function<std::optional<std::vector<HostPlan>>()> new_hosts = [] { return std::nullopt; };
  int64_t stagger_us = 60'000'000;  // a worker starts when the one before is ready, or so long after it
  ProcessOptions of_processes;
  std::function<bool()> should_end;
  // Whether a rolling restart was asked for since the last call.
  std::function<bool()> should_roll = [] { return false; };
  // Workers that start from now on get these settings besides, in place of those of the call before. Throws
  // Error when they are wrong, and then nothing has changed. None: no settings can be changed.
  std::function<void(const Settings&)> change;
  Desk* desk = nullptr;  // who is told and may ask; nobody
  std::string door;      // where such questions are answered, for the log
};

// Returns once every worker of this machine has ended; none is left when it throws either. Throws
// Error(invalid_argument): a port is taken, or a worker refused its settings before any was ready (its last
// line is the message); Error(io): every worker, or the balancer, was given up.
void run_fleet(const FleetOptions& options);

}  // namespace shoal::fleet
