// /model and /wallet of Fish Audio's hosted API: stored voices under its names, and an account that never
// runs dry.
#include <ctime>
#include <map>
#include <memory>
#include <random>

#include "audio/clip.h"
#include "base/error.h"
#include "base/log.h"
#include "server/observe/log_sink.h"
#include "server/routes/fish_models.h"
#include "server/routes/request_body.h"
#include "server/routes/route_pattern.h"
#include "server/routes/speech_warnings.h"
#include "server/routes/unknown_name.h"
#include "server/routes/voice_errors.h"

namespace shoal::server {
namespace {

constexpr const char* kModelPath = "/model/{id}";

struct ModelSchemas {
  explicit ModelSchemas(const ServerConfig& config) : create(fish_create_schema(config)) {}
  const Schema<FishModel> create, patch = fish_patch_schema();
  const Schema<FishListQuery> list = fish_list_schema();
};
using SharedSchemas = std::shared_ptr<const ModelSchemas>;

const std::vector<std::string>& patch_types() {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> all = every_body_type();
    all.emplace_back("application/x-www-form-urlencoded");
    return all;
  }();
  return types;
}

// A name like the service's ids.
std::string drawn_id() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::random_device random;
  std::string id;
  while (id.size() < 32) id += kDigits[random() % 16];
  return id;
}

FishVoice voice_of(Engine& engine, VoiceInfo info) {
  const Voices& voices = engine.voices();
  FishVoice voice{.own = !info.fixed && !info.transcripts.empty()};
  try {
    voice.about = read_fish_note(voices.note(info.name));
  } catch (const Error& error) {  // its note is no reason to hide it; it may also have left meanwhile
    if (error.code() != ErrorCode::not_found) log(LogLevel::warning, error.message());
  }
  voice.info = std::move(info);
  return voice;
}

struct Kept {
  Engine* engine = nullptr;
  FishVoice voice;
};

// Of all models; of a name that two have, the first one's.
std::vector<FishVoice> every_voice(const Services& services) {
  std::map<std::string, FishVoice> found;
  for (const ServedModel& model : services.models.all())
    for (VoiceInfo& info : model.engine->voices().list())
      if (!found.contains(info.name)) {
        const std::string name = info.name;
        found.emplace(name, voice_of(*model.engine, std::move(info)));
      }
  std::vector<FishVoice> voices;
  for (auto& [name, voice] : found) voices.push_back(std::move(voice));
  return voices;
}

Kept voice_called(const Services& services, const std::string& id) {
  for (const ServedModel& model : services.models.all()) {
    try {
      return {model.engine, voice_of(*model.engine, model.engine->voices().get(id))};
    } catch (const Error& error) {
      const bool absent = error.code() == ErrorCode::not_found || error.code() == ErrorCode::invalid_argument;
      if (!absent) throw;
    }
  }
  std::vector<std::string> names;
  for (FishVoice& voice : every_voice(services)) names.push_back(std::move(voice.info.name));
  throw BodyError(ErrorCode::not_found, "id", none_called(id, names, "/model"));
}

std::string id_in(const Request& request) {
  return std::string(match_path(kModelPath, request.path).value());
}

Response json_answer(const Value& value, int status = 200) {
  return {.status = status, .content_type = "application/json", .body = write_json(value), .headers = {}};
}

Response done_answer() { return json_answer({Value::Object{{"status", {std::string("ok")}}}}); }

void add_warnings(Response& response, const std::vector<std::string>& unused) {
  if (!unused.empty()) response.headers.add("x-shoal-warnings", warnings_header(unused));
}

FishModel body_by(const Services& services, const Schema<FishModel>& schema,
                  const std::vector<std::string>& types, const Request& request) {
  require_body_type(request, types);
  FishModel body = schema.read(read_body(*request.headers.find("Content-Type"), request.body));
  if (services.config.strict && !body.unused.empty())
    throw Error(ErrorCode::unsupported, body.unused.front());
  return body;
}

Response create_model(Services& services, const ModelSchemas& schemas, const Request& request) {
  const FishModel body = body_by(services, schemas.create, every_body_type(), request);
  const NewVoice voice{.clips = clips_of(body), .note = write_fish_note(body)};
  for (size_t i = 0; i < voice.clips.size(); ++i)
    audio::decode_clip(std::as_bytes(std::span(voice.clips[i].audio)), concat("voices[", i, "]"),
                       {.max_seconds = static_cast<double>(services.config.max_reference_s)});
  Engine& engine = *services.models.with_references("").engine;
  const std::string id = drawn_id();
  engine.voices().create(id, voice);
  Response response = json_answer(fish_model_value(voice_of(engine, engine.voices().get(id))), 201);
  add_warnings(response, body.unused);
  return response;
}

Response list_models(Services& services, const ModelSchemas& schemas, const Request& request) {
  const FishListQuery query = read_fish_list_query(schemas.list, request);
  return json_answer(fish_page(query, every_voice(services)));
}

Response get_model(Services& services, const ModelSchemas&, const Request& request) {
  return json_answer(fish_model_value(voice_called(services, id_in(request)).voice));
}

Response patch_model(Services& services, const ModelSchemas& schemas, const Request& request) {
  FishModel body = body_by(services, schemas.patch, patch_types(), request);
  const std::vector<std::string> unused = body.unused;
  const std::string id = id_in(request);
  const Kept kept = voice_called(services, id);
  kept.engine->voices().set_note(id, write_fish_note(changed(kept.voice.about, std::move(body))));
  Response response = done_answer();
  add_warnings(response, unused);
  return response;
}

Response delete_model(Services& services, const ModelSchemas&, const Request& request) {
  const std::string id = id_in(request);
  voice_called(services, id).engine->voices().remove(id);
  return done_answer();
}

using Act = Response (*)(Services&, const ModelSchemas&, const Request&);

// Errors of the folder of voices are told without names of files.
Response act_on_voices(Services& services, const ModelSchemas& schemas, const Request& request, Act act) {
  try {
    return act(services, schemas, request);
  } catch (const BodyError&) {
    throw;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable) throw;  // the model had been unloaded
    services.metrics.count_error(name_of(error.code()));
    const Voices& voices = services.models.first().engine->voices();
    const HttpError told = told_of_voices(services, request, error, {voices, "/model"});
    if (told.status >= 500) log_failure(request, error.message());
    return error_response(ErrorStyle::fish, told, request.id);
  }
}

// Reads bodies, clips and folders: all of it on a worker.
Task<> answer_models(Services& services, Exchange& exchange, SharedSchemas schemas, Act act) {
  const Request& request = exchange.request();
  const auto work = [&] { return act_on_voices(services, *schemas, request, act); };
  Response response = co_await services.workers.run(exchange.executor(), work);
  co_await exchange.respond(std::move(response));
}

Route model_route(std::string method, std::string path, std::string summary, const SharedSchemas& schemas,
                  Act act) {
  Route route{.method = std::move(method),
              .path = std::move(path),
              .errors = ErrorStyle::fish,
              .doc = {.summary = std::move(summary), .answer_types = {"application/json"}}};
  route.handle = [schemas, act](Services& services, Exchange& exchange) {
    return answer_models(services, exchange, schemas, act);
  };
  return route;
}

Route model_change(std::string method, std::string path, std::string summary, const SharedSchemas& schemas,
                   Act act) {
  Route route = model_route(std::move(method), std::move(path), std::move(summary), schemas, act);
  route.changes = true;
  return route;
}

// Nobody is charged: the largest numbers that every client reads.
constexpr int64_t kUnlimited = 2147483647;
constexpr const char* kBegan = "1970-01-01T00:00:00Z";

std::string now_utc() { return utc_time(static_cast<int64_t>(std::time(nullptr))); }

Value credit_of(const Request& request) {
  const std::string user(match_path("/wallet/{user_id}/api-credit", request.path).value());
  const std::string_view check = request.parameter("check_free_credit").value_or("");
  const bool checked = check == "true" || check == "True" || check == "1";
  return {Value::Object{{"_id", {"wallet-" + user}},
                        {"user_id", {user}},
                        {"credit", {std::to_string(kUnlimited)}},
                        {"created_at", {std::string(kBegan)}},
                        {"updated_at", {now_utc()}},
                        {"has_phone_sha256", {false}},
                        {"has_free_credit", checked ? Value{true} : Value{}}}};
}

Value package_of(const Request& request) {
  const std::string user(match_path("/wallet/{user_id}/package", request.path).value());
  return {Value::Object{{"_id", {"package-" + user}},
                        {"user_id", {user}},
                        {"type", {std::string("unlimited")}},
                        {"total", {kUnlimited}},
                        {"balance", {kUnlimited}},
                        {"created_at", {std::string(kBegan)}},
                        {"updated_at", {now_utc()}},
                        {"finished_at", {std::string("9999-12-31T23:59:59Z")}}}};
}

template <Value (*kTell)(const Request&)>
Task<> tell_wallet(Services&, Exchange& exchange) {
  const Value told = kTell(exchange.request());
  co_await exchange.respond(json_answer(told));
}

template <Value (*kTell)(const Request&)>
Route wallet_route(std::string path, std::string summary) {
  return {.method = "GET",
          .path = std::move(path),
          .errors = ErrorStyle::fish,
          .doc = {.summary = std::move(summary), .answer_types = {"application/json"}},
          .handle = tell_wallet<kTell>};
}

}  // namespace

std::vector<Route> fish_model_routes(const ServerConfig& config) {
  const auto schemas = std::make_shared<const ModelSchemas>(config);
  std::vector<Route> routes;
  routes.push_back(
      model_route("GET", "/model", "Voices, as Fish Audio's hosted API lists them", schemas, list_models));
  routes.back().doc.query = schemas->list.docs();
  routes.push_back(
      model_change("POST", "/model", "Adds a voice (Fish Audio's hosted API)", schemas, create_model));
  routes.back().body = BodySize::large;
  routes.back().takes_slot = true;  // clips are decoded
  routes.back().doc.body = schemas->create.docs();
  routes.back().doc.body_types = every_body_type();
  routes.push_back(model_route("GET", kModelPath, "One of them", schemas, get_model));
  routes.push_back(model_change("PATCH", kModelPath, "Changes what is told of a voice that was added",
                                schemas, patch_model));
  routes.back().body = BodySize::large;  // a cover image may be in it
  routes.back().doc.body = schemas->patch.docs();
  routes.back().doc.body_types = patch_types();
  routes.push_back(
      model_change("DELETE", kModelPath, "Deletes a voice that was added", schemas, delete_model));
  routes.push_back(wallet_route<credit_of>("/wallet/{user_id}/api-credit",
                                           "What is left (Fish Audio's hosted API): no limit"));
  routes.push_back(wallet_route<package_of>("/wallet/{user_id}/package", "The same, as a subscription"));
  return routes;
}

}  // namespace shoal::server
