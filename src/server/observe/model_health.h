// How a model that the server speaks with is doing.
#pragma once

#include <string>

#include "shoal/statistics.h"

namespace shoal::server {

struct ModelHealth {
  std::string name;  // the label `model` of its numbers
  Health health;
};

// While it reloads, the old model serves; a request to one that was unloaded waits for its load.
inline bool takes_requests(const Health& engine) {
  return engine.state == EngineState::ready || engine.state == EngineState::reloading ||
         engine.state == EngineState::unloaded || engine.state == EngineState::loading;
}

// Whether the model is in memory.
inline bool is_loaded(const Health& engine) {
  return engine.state != EngineState::unloaded && engine.state != EngineState::loading &&
         !engine.model.empty();
}

}  // namespace shoal::server
