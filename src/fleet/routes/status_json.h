// A fleet's status as JSON, and as Prometheus reads it.
#pragma once

#include <string>
#include <vector>

#include "fleet/status.h"
#include "server/body/value.h"

namespace shoal::fleet {

// An entry of GET /v1/workers. `figures`: what the worker answers to GET /v1/stats, or null.
server::Value worker_json(const WorkerStatus& worker, const server::Value& figures);
// {"ready", "total", "starting", ...}: how many are in each state.
server::Value counts_json(const FleetStatus& status);
server::Value rolling_json(const FleetStatus& status);  // null: there was none
// What Prometheus reads as http_sd_configs: the workers' own addresses.
server::Value targets_json(const FleetStatus& status);
// The text format of Prometheus.
std::string exposition(const FleetStatus& status);

}  // namespace shoal::fleet
