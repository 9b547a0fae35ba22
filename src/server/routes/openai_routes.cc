// OpenAI's speech API.
#include <ctime>
#include <memory>

#include "server/routes/openai_speech.h"
#include "server/routes/request_body.h"

namespace shoal::server {
namespace {

using SpeechSchema = std::shared_ptr<const Schema<OpenAiSpeech>>;

const std::vector<std::string>& body_types() {
  static const std::vector<std::string> types = {"application/json"};
  return types;
}

Task<> speak(Services& services, Exchange& exchange, SpeechSchema schema) {
  const OpenAiSpeech body = co_await read_request(services, exchange, *schema, body_types());
  SpeechRequest request = speech_request(services, body);
  AnswerOptions options = answer_options(body);
  const std::string voice = request.voice;
  try {
    if (body.stream_format == "sse")
      co_await answer_with_events(services, exchange, std::move(request), std::move(options));
    else
      co_await answer_with_speech(services, exchange, std::move(request), std::move(options));
  } catch (const Error& error) {
    rethrow_for_openai(error, voice);
  }
}

Response json_response(const Value& value) {
  return {.status = 200, .content_type = "application/json", .body = write_json(value), .headers = {}};
}

Value model_value(const std::string& name, int64_t created) {
  return {Value::Object{{"id", {name}},
                        {"object", {std::string("model")}},
                        {"created", {created}},
                        {"owned_by", {std::string("shoal")}}}};
}

// Values are built outside of coroutines: g++ 12 cannot compile lists of initialisers within them.
Value model_list(const std::string& name, int64_t created) {
  return {
      Value::Object{{"object", {std::string("list")}}, {"data", {Value::Array{model_value(name, created)}}}}};
}

Task<> list_models(Services& services, Exchange& exchange, int64_t created) {
  co_await exchange.respond(json_response(model_list(services.model, created)));
}

Task<> get_model(Services& services, Exchange& exchange, int64_t created) {
  const std::string& path = exchange.request().path;
  const std::string name = path.substr(path.rfind('/') + 1);
  if (!is_model_name(services, name))
    throw BodyError(ErrorCode::not_found, "model", "there is none of that name; see /v1/models");
  co_await exchange.respond(json_response(model_value(name, created)));
}

Value voice_list(const std::vector<VoiceInfo>& infos, bool names_alone) {
  Value::Array voices;
  const auto add = [&](const std::string& id, const std::string& name) {
    if (names_alone)
      voices.push_back({id});
    else
      voices.push_back({Value::Object{{"id", {id}}, {"name", {name}}}});
  };
  add("default", "The model's own voice");
  for (const VoiceInfo& info : infos)
    if (info.name != "default") add(info.name, info.name);
  return {Value::Object{{"voices", {std::move(voices)}}}};
}

Task<> list_voices(Services& services, Exchange& exchange) {
  const auto list = [&services] { return services.engine.voices().list(); };
  const std::vector<VoiceInfo> infos = co_await services.workers.run(exchange.executor(), list);
  const bool names_alone = exchange.request().parameter("legacy") == "true";
  co_await exchange.respond(json_response(voice_list(infos, names_alone)));
}

Route speech_route(const ServerConfig& config) {
  const auto schema = std::make_shared<const Schema<OpenAiSpeech>>(openai_speech_schema(config));
  Route route{.method = "POST",
              .path = "/v1/audio/speech",
              .errors = ErrorStyle::openai,
              .body = BodySize::large,
              .doc = {.summary = "Speaks a text: sound as it is made, or as server-sent events",
                      .body = schema->docs(),
                      .body_types = body_types(),
                      .answer_types = {"audio/mpeg", "audio/ogg", "audio/aac", "audio/flac", "audio/wav",
                                       "application/octet-stream", "text/event-stream"}},
              .speaks = true};
  route.handle = [schema](Services& services, Exchange& exchange) {
    return speak(services, exchange, schema);
  };
  return route;
}

Route get_route(std::string path, std::string summary) {
  return {.method = "GET",
          .path = std::move(path),
          .errors = ErrorStyle::openai,
          .doc = {.summary = std::move(summary), .answer_types = {"application/json"}}};
}

}  // namespace

std::vector<Route> openai_routes(const ServerConfig& config) {
  const int64_t created = std::time(nullptr);
  std::vector<Route> routes;
  routes.push_back(speech_route(config));
  routes.push_back(get_route("/v1/models", "The model that speaks here"));
  routes.back().handle = [created](Services& services, Exchange& exchange) {
    return list_models(services, exchange, created);
  };
  routes.push_back(get_route("/v1/models/{id}", "A model by its name"));
  routes.back().handle = [created](Services& services, Exchange& exchange) {
    return get_model(services, exchange, created);
  };
  routes.push_back(
      get_route("/v1/audio/voices", "Voices that a request may name; with ?legacy=true their names alone"));
  routes.back().handle = list_voices;
  return routes;
}

}  // namespace shoal::server
