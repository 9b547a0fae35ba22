// Whether the server takes requests, as every health check asks.
#pragma once

#include <algorithm>

#include "server/observe/model_health.h"
#include "server/routes/services.h"

namespace shoal::server {

// Every model has spoken its first sentence, and the server is not about to end.
inline bool is_ready(const Services& services) {
  return !services.draining && std::ranges::all_of(services.models.all(), [](const ServedModel& model) {
    return takes_requests(model.engine->health());
  });
}

// Not ready yet, but about to be: models are being loaded for the first time.
inline bool is_loading(const Services& services) {
  return !services.draining && std::ranges::any_of(services.models.all(), [](const ServedModel& model) {
    const Health health = model.engine->health();
    return !takes_requests(health) && (health.state == EngineState::starting || health.model.empty());
  });
}

}  // namespace shoal::server
