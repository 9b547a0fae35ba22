// Fish-Speech's own API: speaking, and whether it lives.
#include <algorithm>
#include <memory>

#include "server/routes/fish_request.h"
#include "server/routes/request_body.h"
#include "server/routes/speech_parts.h"

namespace shoal::server {
namespace {

using FishSchema = std::shared_ptr<const Schema<FishRequest>>;

Task<> speak(Services& services, Exchange& exchange, FishSchema schema) {
  FishRequest defaults = fish_defaults(exchange.request());
  const FishRequest body =
      co_await read_request_onto(services, exchange, *schema, every_body_type(), std::move(defaults));
  Engine& engine = *model_of(services.models, exchange.request(), body).engine;
  SpeechRequest request = speech_request(services, engine, body);
  AnswerOptions options = answer_options(body);
  if (body.ssml) options.parts = read_ssml(engine, request);
  co_await answer_with_speech(services, engine, exchange, std::move(request), std::move(options));
}

Response health() {
  return {.status = 200,
          .content_type = "application/json",
          .body = write_json({Value::Object{{"status", {std::string("ok")}}}}),
          .headers = {}};
}

Task<> tell_health(Services&, Exchange& exchange) { co_await exchange.respond(health()); }

Route fish_speech_route(const ServerConfig& config) {
  const auto schema = std::make_shared<const Schema<FishRequest>>(fish_request_schema(config));
  Route route{.method = "POST",
              .path = "/v1/tts",
              .errors = ErrorStyle::fish,
              .body = BodySize::large,
              .doc = {.summary = "Speaks a text (Fish-Speech's API)",
                      .body = schema->docs(),
                      .body_types = every_body_type(),
                      .answer_types = audio::mime_types()},
              .takes_slot = true};
  std::ranges::replace(route.doc.answer_types, "audio/pcm", "application/octet-stream");
  route.handle = [schema](Services& services, Exchange& exchange) {
    return speak(services, exchange, schema);
  };
  return route;
}

Route health_route(std::string method) {
  return {.method = std::move(method),
          .path = "/v1/health",
          .errors = ErrorStyle::fish,
          .doc = {.summary = "Whether the server lives (Fish-Speech's API)",
                  .answer_types = {"application/json"}},
          .handle = tell_health,
          .for_operators = true};
}

// Clients POST an empty object.
Route posted_health_route() {
  Route route = health_route("POST");
  route.body = BodySize::small;
  route.doc.summary += "; a body is ignored";
  route.doc.body_types = {"*/*"};
  route.doc.body_required = false;
  return route;
}

}  // namespace

std::vector<Route> fish_routes(const ServerConfig& config) {
  return {fish_speech_route(config), health_route("GET"), posted_health_route()};
}

}  // namespace shoal::server
