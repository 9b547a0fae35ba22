// The table of routes as an OpenAPI document.
#pragma once

#include <string>
#include <vector>

#include "server/routes/services.h"

namespace shoal::server {

// OpenAPI 3.1, as JSON: every route that exists under `config` with its path parameters, body by media type
// and field, answers, errors in the family's form, and the key that it needs.
std::string openapi_document(const std::vector<Route>& routes, const ServerConfig& config);

}  // namespace shoal::server
