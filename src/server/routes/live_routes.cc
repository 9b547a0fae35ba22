// GET /v1/audio/stream: text in as it is written, sound out as it is made (docs/LIVE.md); the same for
// SageMaker.
#include <memory>

#include "server/routes/live_session.h"
#include "server/routes/services.h"

namespace shoal::server {
namespace {

Task<> converse(Services& services, WebSocket& socket, std::shared_ptr<const LiveReader> reader,
                LiveFrames frames) {
  LiveSession session(services, socket, *reader, frames);
  co_await session.run();
}

Route live_route(std::string path, const ServerConfig& config, LiveFrames frames, RouteDoc doc) {
  const auto reader = std::make_shared<const LiveReader>(config.max_references);
  return {
      .method = "GET",
      .path = std::move(path),
      .errors = ErrorStyle::openai,
      .access = Access::client,
      .body = BodySize::large,
      .doc = std::move(doc),
      .converse = [reader, frames](Services& services,
                                   WebSocket& socket) { return converse(services, socket, reader, frames); },
      .takes_slot = true};
}

}  // namespace

std::vector<Route> live_routes(const ServerConfig& config) {
  RouteDoc doc{.summary = "A WebSocket: text in pieces in, sound out (docs/LIVE.md)",
               .body = {},
               .body_types = {},
               .answer_types = {}};
  RouteDoc of_sagemaker = doc;
  of_sagemaker.summary =
      "SageMaker's bidirectional stream: the same WebSocket; JSON may come in binary messages";
  return {live_route("/v1/audio/stream", config, LiveFrames::text, std::move(doc)),
          live_route("/invocations-bidirectional-stream", config, LiveFrames::text_or_binary,
                     std::move(of_sagemaker))};
}

}  // namespace shoal::server
