// What clouds say of a server in variables of their own: RunPod (PORT, PORT_HEALTH, RUNPOD_POD_ID,
// RUNPOD_ENDPOINT_ID), SageMaker (SAGEMAKER_MULTI_MODEL) and Vertex AI (AIP_HTTP_PORT, AIP_HEALTH_ROUTE,
// AIP_PREDICT_ROUTE).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "settings/value.h"
#include "shoal/server_config.h"

namespace shoal::settings {

struct PlatformValue {
  std::string_view key;
  Value value;
  std::string source;  // as in ResolvedSettings::Origin
};

// The settings that `variables` (name -> value; empty ones count as unset) stand for. A port replaces that of
// `otherwise`.listen; the host stays. Throws Error(invalid_argument): no port.
std::vector<PlatformValue> platform_values(const std::map<std::string, std::string>& variables,
                                           const ServerConfig& otherwise);

}  // namespace shoal::settings
