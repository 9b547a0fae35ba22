// GET /v1/audio/stream: text in as it is written, sound out as it is made (docs/LIVE.md).
#include <memory>

#include "server/routes/live_session.h"
#include "server/routes/services.h"

namespace shoal::server {
namespace {

Task<> converse(Services& services, WebSocket& socket, std::shared_ptr<const LiveReader> reader) {
  LiveSession session(services, socket, *reader);
  co_await session.run();
}

}  // namespace

std::vector<Route> live_routes(const ServerConfig& config) {
  const auto reader = std::make_shared<const LiveReader>(config.max_references);
  RouteDoc doc{.summary = "A WebSocket: text in pieces in, sound out (docs/LIVE.md)",
               .body = {},
               .body_types = {},
               .answer_types = {}};
  return {{.method = "GET",
           .path = "/v1/audio/stream",
           .errors = ErrorStyle::openai,
           .access = Access::client,
           .body = BodySize::large,
           .doc = std::move(doc),
           .converse = [reader](Services& services,
                                WebSocket& socket) { return converse(services, socket, reader); },
           .takes_slot = true}};
}

}  // namespace shoal::server
