// Where a fleet answers for itself.
#pragma once

#include <memory>
#include <string>

#include "fleet/desk.h"
#include "shoal/server_config.h"

namespace shoal::cli {

// Listens at operator_listen, or at a free port of 127.0.0.1, as long as it lives. Keys and origins are those
// of the workers.
class FleetDoor {
 public:
  // `address`: where clients find the fleet. Throws the Errors of keys and addresses,
  // and invalid_argument for an address that is taken.
  FleetDoor(const ServerConfig& config, const std::string& address, fleet::Desk& desk);
  ~FleetDoor();
  FleetDoor(const FleetDoor&) = delete;
  FleetDoor& operator=(const FleetDoor&) = delete;

  int port() const;
  std::string address() const;  // http://127.0.0.1:9000

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::cli
