#include <algorithm>

#include "server/routes/services.h"

namespace shoal::server {

std::vector<Route> route_table(const ServerConfig& config) {
  std::vector<Route> table;
  for (const auto part :
       {openai_routes, kokoro_routes, fish_routes, fish_model_routes, fish_live_routes, eleven_routes,
        realtime_routes, reference_routes, codec_routes, batch_routes, live_routes, operator_routes,
        sagemaker_routes, multi_model_routes, kserve_routes, page_routes}) {
    for (Route& route : part(config)) table.push_back(std::move(route));
  }
  // A cloud may be told to ask what is there anyway: /ready, /v1/audio/speech.
  for (Route& route : vertex_routes(config)) {
    const bool is_there = std::ranges::any_of(
        table, [&](const Route& known) { return known.method == route.method && known.path == route.path; });
    if (!is_there) table.push_back(std::move(route));
  }
  return table;
}

}  // namespace shoal::server
