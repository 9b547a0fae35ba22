// How a model that the server speaks with is doing.
#pragma once

#include <string>

#include "shoal/statistics.h"

namespace shoal::server {

struct ModelHealth {
  std::string name;  // the label `model` of its numbers
  Health health;
};

// While it reloads, the old model serves.
inline bool takes_requests(const Health& engine) {
  return engine.state == EngineState::ready || engine.state == EngineState::reloading;
}

}  // namespace shoal::server
