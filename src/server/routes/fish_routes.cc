// Fish-Speech's own API: speaking, and whether it lives.
#include <memory>

#include "server/routes/fish_request.h"
#include "server/routes/request_body.h"

namespace shoal::server {
namespace {

using FishSchema = std::shared_ptr<const Schema<FishRequest>>;

const std::vector<std::string>& body_types() {
  static const std::vector<std::string> types = {"application/json", "application/msgpack",
                                                 "multipart/form-data"};
  return types;
}

Task<> speak(Services& services, Exchange& exchange, FishSchema schema) {
  const FishRequest body = co_await read_request(services, exchange, *schema, body_types());
  co_await answer_with_speech(services, exchange, speech_request(body), answer_options(body));
}

Response health() {
  return {.status = 200,
          .content_type = "application/json",
          .body = write_json({Value::Object{{"status", {std::string("ok")}}}}),
          .headers = {}};
}

Task<> tell_health(Services&, Exchange& exchange) { co_await exchange.respond(health()); }

Route speech_route(const ServerConfig& config) {
  const auto schema = std::make_shared<const Schema<FishRequest>>(fish_request_schema(config));
  Route route{.method = "POST",
              .path = "/v1/tts",
              .errors = ErrorStyle::fish,
              .body = BodySize::large,
              .doc = {.summary = "Speaks a text (Fish-Speech's API)",
                      .body = schema->docs(),
                      .body_types = body_types(),
                      .answer_types = {"audio/wav", "application/octet-stream", "audio/mpeg", "audio/ogg",
                                       "audio/flac"}},
              .speaks = true};
  route.handle = [schema](Services& services, Exchange& exchange) {
    return speak(services, exchange, schema);
  };
  return route;
}

Route health_route(std::string method) {
  return {.method = std::move(method),
          .path = "/v1/health",
          .errors = ErrorStyle::fish,
          .body = BodySize::small,  // clients POST an empty object
          .doc = {.summary = "Whether the server lives (Fish-Speech's API)",
                  .answer_types = {"application/json"}},
          .handle = tell_health};
}

}  // namespace

std::vector<Route> fish_routes(const ServerConfig& config) {
  return {speech_route(config), health_route("GET"), health_route("POST")};
}

}  // namespace shoal::server
