// One run of `shoal fleet`: until a signal ends it.
#pragma once

#include <string>
#include <vector>

#include "fleet/plan.h"

namespace shoal::cli {

constexpr int kMostWorkers = 256;  // of a fleet, or of a device

struct FleetCommand {
  fleet::FleetRequest request;  // its gpus and cpus are found by the run
  int stagger_s = 60;
  std::string balancer = "haproxy", haproxy = "haproxy", strategy = "least-connections",
              listen = "127.0.0.1:8000";
  std::string hosts;    // file; empty: none
  int queue_limit = 0;  // 0: none but those of the workers
  bool print_haproxy = false;
};

// `options` are those of `shoal serve` that hold for every worker. Throws what understanding them throws, and
// the Errors of the fleet.
void run_fleet_command(FleetCommand asked, const std::vector<std::string>& options);

}  // namespace shoal::cli
