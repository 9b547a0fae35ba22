// Fish Audio's WebSocket for text that is still being written.
#include <memory>

#include "server/routes/fish_session.h"

namespace shoal::server {
namespace {

Task<> converse_fish(Services& services, WebSocket& socket, std::shared_ptr<const FishReader> reader) {
  FishSession session(services, socket, *reader);
  co_await session.run();
}

}  // namespace

std::vector<Route> fish_live_routes(const ServerConfig& config) {
  const auto reader = std::make_shared<const FishReader>(config);
  Route route{.method = "GET",
              .path = "/v1/tts/live",
              .errors = ErrorStyle::fish,
              .body = BodySize::large,
              .doc = {.summary = "A WebSocket: text in pieces in, sound out (Fish Audio's hosted API)"},
              .takes_slot = true};
  route.converse = [reader](Services& services, WebSocket& socket) {
    return converse_fish(services, socket, reader);
  };
  return {std::move(route)};
}

}  // namespace shoal::server
