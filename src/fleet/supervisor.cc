#include "fleet/supervisor.h"

#include <exception>

#include "fleet/fleet.h"

namespace shoal::fleet {

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
