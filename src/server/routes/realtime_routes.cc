// OpenAI's Realtime API, speech out only: a WebSocket.
#include <memory>

#include "server/routes/realtime_session.h"

namespace shoal::server {
namespace {

struct RealtimeSchemas {
  Schema<RealtimeQuery> query = realtime_query_schema();
  RealtimeReader reader;
};

Task<> converse_in_real_time(Services& services, WebSocket& socket,
                             std::shared_ptr<const RealtimeSchemas> schemas) {
  RealtimeSession session(services, socket, schemas->query, schemas->reader);
  co_await session.run();
}

}  // namespace

std::vector<Route> realtime_routes(const ServerConfig&) {
  const auto schemas = std::make_shared<const RealtimeSchemas>();
  Route route{.method = "GET",
              .path = "/v1/realtime",
              .errors = ErrorStyle::openai,
              .body = BodySize::small,
              .doc = {.summary = "A WebSocket: conversations whose texts are spoken (OpenAI's Realtime API)",
                      .query = schemas->query.docs()},
              .takes_slot = true};
  route.converse = [schemas](Services& services, WebSocket& socket) {
    return converse_in_real_time(services, socket, schemas);
  };
  return {std::move(route)};
}

}  // namespace shoal::server
