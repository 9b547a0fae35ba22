// What stands in front of the workers of a fleet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/fleet_run.h"
#include "fleet/balancer.h"
#include "fleet/memory_file.h"
#include "fleet/runtime_socket.h"
#include "fleet/supervisor.h"
#include "shoal/server_config.h"

namespace shoal::cli {

// The plan of the balancer without sockets, certificate and the fleet's own routes; nothing: --balancer none.
// Throws Error(invalid_argument).
std::optional<fleet::BalancerPlan> plan_balancer(const FleetCommand& asked, const ServerConfig& server);

// The file of --hosts; empty: there is none. Throws Error(invalid_argument).
std::vector<fleet::HostPlan> read_hosts(const FleetCommand& asked);

// HAProxy, ready to be started.
class FleetFront {
 public:
  // `fleet_port`: on 127.0.0.1, of what answers the fleet's own routes. Throws Error(invalid_argument,
  // not_found, io): no such program, a configuration that it does not accept, a certificate that is none.
  FleetFront(fleet::BalancerPlan plan, const std::string& program, const ServerConfig& server,
             int fleet_port);

  fleet::FleetOptions::InFront options();
  // Reads the certificate and its key again; the log tells what came of it.
  void renew_certificate();

 private:
  fleet::BalancerPlan completed(fleet::BalancerPlan plan, int fleet_port);

  const std::string certificate_, key_;  // files
  const fleet::RuntimeSocket socket_;
  std::string pem_;
  std::optional<fleet::MemoryFile> pem_file_;
  fleet::BalancerPlan plan_;
  const fleet::Balancer balancer_;
};

}  // namespace shoal::cli
