// How a fleet is, as plain values.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "fleet/watch.h"

namespace shoal::fleet {

struct WorkerStatus {
  std::string name, device;  // "cpu", "cuda:0"; empty: of another machine
  std::string host = "127.0.0.1";
  int port = 0;
  pid_t pid = 0;  // 0: it does not run, or on another machine
  WorkerState state = WorkerState::waiting;
  bool gets_requests = true;  // when it is ready
  int restarts = 0;           // in all
  int failures = 0;           // in a row
  double uptime_s = 0;        // of the process
  std::string last_error;     // why a process of it ended, or was killed; empty: none did
};

struct RollingStatus {
  std::string what;                // "restart", "reload", "rollback"
  std::string outcome;             // "under way", "done", "failed"
  std::vector<std::string> turns;  // workers that have had theirs, in order
};

struct FleetStatus {
  std::vector<WorkerStatus> workers;
  std::optional<RollingStatus> rolling;  // the last one
  pid_t balancer_pid = 0;                // 0: none, or it does not run
  int balancer_restarts = 0;
  double uptime_s = 0;

  int ready() const;  // workers that get requests and are ready for them
};

}  // namespace shoal::fleet
