// Addresses that a server listens at, as settings name them.
#pragma once

#include <string>
#include <string_view>

#include "shoal/server_config.h"

namespace shoal::settings {

// host:port or [v6]:port. Throws Error(invalid_argument) naming the field.
void check_listen(std::string_view field, const std::string& listen);
// ServerConfig::wyoming by itself, and with keys. Throws Error(invalid_argument).
void check_wyoming(const ServerConfig& config);

}  // namespace shoal::settings
