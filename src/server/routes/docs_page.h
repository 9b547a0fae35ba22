// The table of routes for people.
#pragma once

#include <string>
#include <string_view>

namespace shoal::server {

// HTML of an OpenAPI document: every route with its fields, answers and key. Self-contained, without scripts.
std::string docs_page(std::string_view openapi);

}  // namespace shoal::server
