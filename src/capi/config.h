#pragma once

#include "capi/handle.h"
#include "settings/table.h"
#include "shoal/shoal.h"

struct shoal_config : shoal::capi::Handle {
  static constexpr auto kKind = shoal::capi::Kind::config;
  shoal_config() : Handle(kKind) {}
  shoal::settings::Configs values;  // of the engine; the server's keep their defaults
};

namespace shoal::capi {

// NULL: the defaults.
inline EngineConfig config_of(const shoal_config* config) {
  return config ? held(config, "config").values.engine : EngineConfig{};
}

}  // namespace shoal::capi
