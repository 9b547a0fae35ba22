// OpenAI's speech API.
#include <ctime>
#include <memory>
#include <set>
#include <span>

#include "report/engine_json.h"
#include "server/routes/eleven_lists.h"
#include "server/routes/openai_speech.h"
#include "server/routes/request_body.h"

namespace shoal::server {
namespace {

using SpeechSchema = std::shared_ptr<const Schema<OpenAiSpeech>>;

// As Kokoro-FastAPI 0.8 has them.
AnswerOptions with_file_name(AnswerOptions options, const OpenAiSpeech& body) {
  options.headers.add("Content-Disposition", "attachment; filename=speech." + body.response_format);
  return options;
}

Task<> speak(Services& services, Exchange& exchange, SpeechSchema schema) {
  const OpenAiSpeech body = co_await read_request(services, exchange, *schema, json_type());
  Engine& engine = *model_of(services.models, body).engine;
  SpeechRequest request = speech_request(services, engine, body);
  AnswerOptions options = answer_options(body);
  const std::string voice = request.voice;
  try {
    take_ssml(engine, body, request, options);
    if (body.stream_format == "sse")
      co_await answer_with_events(services, engine, exchange, std::move(request), std::move(options));
    else
      co_await answer_with_speech(services, engine, exchange, std::move(request),
                                  with_file_name(std::move(options), body));
  } catch (const Error& error) {
    rethrow_for_openai(error, voice);
  }
}

Response json_response(const Value& value) {
  return {.status = 200, .content_type = "application/json", .body = write_json(value), .headers = {}};
}

// Whether the model is in memory, and how far a load is.
void add_state(const Health& engine, Value::Object& members) {
  members.emplace_back("state", Value{std::string(name_of(engine.state))});
  if (engine.state != EngineState::loading) return;
  members.emplace_back("loading_s", Value{engine.loading_s});
  members.emplace_back("last_load_s", Value{engine.last_load_s});
}

// name: as it was asked for. With its family, once it is loaded.
Value model_value(const std::string& name, const ServedModel& model, int64_t created) {
  Value::Object members{{"id", {name}},
                        {"object", {std::string("model")}},
                        {"created", {created}},
                        {"owned_by", {std::string("shoal")}}};
  if (name != model.name) members.emplace_back("alias_of", Value{model.name});
  try {
    const ModelTraits traits = model.engine->traits();
    members.emplace_back("family", Value{traits.family});
    members.emplace_back("understands", report::understood_json(traits));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unavailable) throw;
  }
  add_state(model.engine->health(), members);
  return {std::move(members)};
}

// Values are built outside of coroutines: g++ 12 cannot compile lists of initialisers within them.
Value model_list(const Models& models, int64_t created) {
  Value::Array data;
  for (const ServedModel& model : models.all()) data.push_back(model_value(model.name, model, created));
  for (const ModelAlias& alias : models.aliases())
    data.push_back(model_value(alias.name, *alias.model, created));
  return {Value::Object{{"object", {std::string("list")}}, {"data", {std::move(data)}}}};
}

// As Open WebUI reads it.
Value audio_model_list(const Models& models) {
  Value::Array list;
  const auto add = [&list](const std::string& name, const ServedModel& model) {
    Value::Object members{{"id", {name}}, {"name", {name}}};
    if (name != model.name) members.emplace_back("alias_of", Value{model.name});
    list.push_back({std::move(members)});
  };
  for (const ServedModel& model : models.all()) add(model.name, model);
  for (const ModelAlias& alias : models.aliases()) add(alias.name, *alias.model);
  return {Value::Object{{"models", {std::move(list)}}}};
}

Task<> list_audio_models(Services& services, Exchange& exchange) {
  co_await exchange.respond(json_response(audio_model_list(services.models)));
}

// Clients of ElevenLabs ask at the same path: those that send their header get their list.
Task<> list_models(Services& services, Exchange& exchange, int64_t created) {
  const bool eleven = exchange.request().headers.find("xi-api-key") != nullptr;
  Response response =
      json_response(eleven ? eleven_models(services.models) : model_list(services.models, created));
  response.headers.add("Vary", "xi-api-key");
  co_await exchange.respond(std::move(response));
}

Task<> get_model(Services& services, Exchange& exchange, int64_t created) {
  // Names of models may have slashes: hexgrad/Kokoro-82M.
  const std::string name = exchange.request().path.substr(std::string_view("/v1/models/").size());
  Response response = json_response(model_value(name, services.models.named(name), created));
  co_await exchange.respond(std::move(response));
}

Value voice_value(const ServedModel& model, const VoiceInfo& info) {
  const bool own = info.name == "default";
  Value::Object members{{"id", {info.name}},
                        {"name", {own ? std::string("The model's own voice") : info.name}},
                        {"model", {model.name}}};
  if (info.fixed) members.emplace_back("fixed", Value{true});
  if (!info.language.empty()) members.emplace_back("language", Value{info.language});
  return {std::move(members)};
}

Value alias_value(const ServedModel& model, const VoiceAlias& alias) {
  return {Value::Object{{"id", {alias.name}},
                        {"name", {alias.name}},
                        {"model", {model.name}},
                        {"fixed", {true}},
                        {"alias_of", {alias.voice}}}};
}

// The voices of these models in order; in a list of names each once and without aliases, which would look
// like voices.
Value voice_list(const VoiceNames& names, std::span<const ServedModel> models, bool names_alone) {
  Value::Array voices;
  std::set<std::string> named;
  const auto add = [&](const ServedModel& model, const VoiceInfo& info) {
    if (!names_alone)
      voices.push_back(voice_value(model, info));
    else if (named.insert(info.name).second)
      voices.push_back({info.name});
  };
  for (const ServedModel& model : models) {
    add(model, {.name = "default"});
    for (const VoiceInfo& info : model.engine->voices().list())
      if (info.name != "default") add(model, info);
    if (names_alone) continue;
    for (const VoiceAlias& alias : names.aliases_of(*model.engine))
      voices.push_back(alias_value(model, alias));
  }
  return {Value::Object{{"voices", {std::move(voices)}}}};
}

Task<> list_voices(Services& services, Exchange& exchange) {
  const Request& request = exchange.request();
  std::span<const ServedModel> models = services.models.all();
  if (const auto name = request.parameter("model")) models = {&services.models.named(*name), 1};
  const bool names_alone = request.parameter("legacy") == "true";
  const auto list = [&names = services.voice_names, models, names_alone] {
    return voice_list(names, models, names_alone);
  };
  const Value voices = co_await services.workers.run(exchange.executor(), list);
  co_await exchange.respond(json_response(voices));
}

Route openai_speech_route(const ServerConfig& config) {
  const auto schema = std::make_shared<const Schema<OpenAiSpeech>>(openai_speech_schema(config));
  Route route{.method = "POST",
              .path = "/v1/audio/speech",
              .errors = ErrorStyle::openai,
              .body = BodySize::large,
              .doc = {.summary = "Speaks a text: sound as it is made, or as server-sent events",
                      .body = schema->docs(),
                      .body_types = json_type(),
                      .answer_types = audio::mime_types()},
              .takes_slot = true};
  route.doc.answer_types.emplace_back("text/event-stream");
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
  routes.push_back(openai_speech_route(config));
  routes.push_back(get_route("/v1/models", "The models that speak here"));
  routes.back().handle = [created](Services& services, Exchange& exchange) {
    return list_models(services, exchange, created);
  };
  routes.push_back(get_route("/v1/models/{id}", "A model by its name"));
  routes.back().handle = [created](Services& services, Exchange& exchange) {
    return get_model(services, exchange, created);
  };
  routes.push_back(get_route("/v1/audio/voices", "Voices that a request may name"));
  routes.back().doc.query = {
      {.name = "model", .type = "string", .help = "a model of /v1/models; default: the voices of all"},
      {.name = "legacy", .type = "boolean", .help = "true: their names alone", .default_value = "false"}};
  routes.back().handle = list_voices;
  const Access access = config.list_without_key ? Access::open : Access::client;
  routes.back().access = access;
  routes.push_back(get_route("/v1/audio/models", "The models that speak here, as Open WebUI asks for them"));
  routes.back().access = access;
  routes.back().handle = list_audio_models;
  return routes;
}

}  // namespace shoal::server
