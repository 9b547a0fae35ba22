// The open inference protocol (KServe's v2) with Triton's extensions: binary tensors, generate,
// configuration.
#include <memory>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/version.h"
#include "server/body/infer_body.h"
#include "server/observe/log_sink.h"
#include "server/routes/infer_answer.h"
#include "server/routes/readiness.h"
#include "server/routes/request_body.h"
#include "server/routes/route_pattern.h"
#include "server/routes/spoken_answer.h"

namespace shoal::server {
namespace {

using InferSchema = std::shared_ptr<const Schema<InferSpeech>>;

constexpr const char* kVersion = "/versions/1";  // there is one of each model

const ServedModel& model_at(const Models& models, const Request& request) {
  std::string_view name = match_path(request.route, request.path).value_or("");
  if (name.ends_with(kVersion)) name.remove_suffix(std::string_view(kVersion).size());
  return models.named(name);
}

Response kserve_json(const Value& value) {
  return {.status = 200, .content_type = "application/json", .body = write_json(value), .headers = {}};
}

Value server_metadata() {
  Value::Array extensions;
  for (const char* extension : {"binary_tensor_data", "generate", "model_configuration"})
    extensions.push_back({std::string(extension)});
  return {Value::Object{{"name", {std::string("shoal")}},
                        {"version", {std::string(version())}},
                        {"extensions", {std::move(extensions)}}}};
}

using Tell = Value (*)(const Services&, const Request&);

Value tell_live(const Services&, const Request&) { return {Value::Object{{"live", {true}}}}; }
Value tell_server(const Services&, const Request&) { return server_metadata(); }
Value tell_ready(const Services& services, const Request&) {
  if (!is_ready(services)) fail(ErrorCode::unavailable, "the models are not ready");
  return {Value::Object{{"ready", {true}}}};
}
Value tell_model(const Services& services, const Request& request) {
  return model_metadata(model_at(services.models, request).name);
}
Value tell_configuration(const Services& services, const Request& request) {
  return model_configuration(model_at(services.models, request).name);
}
Value tell_model_ready(const Services& services, const Request& request) {
  const ServedModel& model = model_at(services.models, request);
  if (services.draining || !takes_requests(model.engine->health()))
    fail(ErrorCode::unavailable, "the model is not ready");
  return {Value::Object{{"name", {model.name}}, {"ready", {true}}}};
}

template <Tell kTell>
Task<> answer_kserve(Services& services, Exchange& exchange) {
  Response response = kserve_json(kTell(services, exchange.request()));
  co_await exchange.respond(std::move(response));
}

// A voice that is not there is the request's fault: 404 would mean the model.
[[noreturn]] void rethrow_for_kserve(const Error& error) {
  if (error.code() == ErrorCode::not_found) throw BodyError(ErrorCode::invalid_argument, "", error.message());
  throw;
}

// Reads the body, on a worker where it is large.
template <typename Read>
Task<InferSpeech> read_asked(Services& services, Exchange& exchange, Read read) {
  if (exchange.request().body.size() <= kQuickBodyBytes) co_return read();
  InferSpeech asked = co_await services.workers.run(exchange.executor(), read);
  co_return asked;
}

SpeechRequest infer_speech(Services& services, Engine& engine, const InferSpeech& asked) {
  infer_options(asked);  // refuses a rate that the format cannot carry
  return speech_request(services, engine, asked);
}

Task<InferSound> whole_sound(SpokenAnswer& answer, const InferSpeech& asked) {
  InferSound sound;
  size_t held = 0;
  while (true) {
    const std::vector<float> samples = co_await answer.next();
    if (samples.empty()) break;
    sound.samples.insert(sound.samples.end(), samples.begin(), samples.end());
    const size_t needed =
        sound.samples.size() * sizeof(float) + most_infer_bytes(asked, sound.samples.size());
    answer.hold(needed - held);
    held = needed;
  }
  sound.summary = answer.summary();
  co_return sound;
}

Task<> send_tensors(Services& services, Exchange& exchange, const ServedModel& model,
                    const InferSpeech& asked) {
  Speaking speaking(services.metrics);
  Engine& engine = *model.engine;
  SpeechRequest request = infer_speech(services, engine, asked);
  request.delivery = Delivery::whole;
  Speech speech = co_await submit_speech(services, engine, exchange, std::move(request));
  SpokenAnswer answer(services, engine, exchange, std::move(speech));
  InferSound sound = co_await whole_sound(answer, asked);
  sound.model = model.name;
  const auto make = [&asked, &sound] { return infer_answer(asked, sound); };
  InferAnswer made = co_await services.workers.run(exchange.executor(), make);
  answer.set_encoder(infer_options(asked), true);  // whose rate the head tells
  Response response = answer.head(made.json_bytes ? "application/octet-stream" : "application/json", {});
  if (made.json_bytes)
    response.headers.add("Inference-Header-Content-Length", std::to_string(made.json_bytes));
  response.body = std::move(made.body);
  co_await exchange.respond(std::move(response));
  speaking.heard();
}

Task<> infer(Services& services, Exchange& exchange, InferSchema schema) {
  const Request& request = exchange.request();
  const Schema<InferSpeech>& parameters = *schema;
  const int most = services.config.max_references;
  const auto read = [&request, &parameters, most] { return read_infer(request, parameters, most); };
  const InferSpeech asked = co_await read_asked(services, exchange, read);
  const ServedModel& model = model_at(services.models, request);
  try {
    co_await send_tensors(services, exchange, model, asked);
  } catch (const Error& error) {
    rethrow_for_kserve(error);
  }
}

std::string generated(const InferSpeech& asked, const std::string& model, std::string_view bytes,
                      int rate_hz) {
  Value::Object head = infer_head(asked.id, model);
  head.emplace_back(kOutputNames[kSampleRate], Value{int64_t{rate_hz}});
  std::string json = write_json({std::move(head)});
  json.pop_back();
  json += concat(",\"", kOutputNames[kAudioFile], "\":\"");
  append_base64(json, bytes);
  return json + "\"}";
}

int generated_rate(const InferSpeech& asked, SpokenAnswer& answer) {
  return infer_rate_hz(asked, answer.summary().sample_rate_hz);
}

Task<> send_generated(Exchange& exchange, SpokenAnswer& answer, const InferSpeech& asked,
                      const std::string& model) {
  const std::string file = co_await answer.whole_file();
  answer.hold(base64_size(file.size()));
  Response response = answer.head("application/json", {});
  response.body = generated(asked, model, file, generated_rate(asked, answer));
  co_await exchange.respond(std::move(response));
}

Task<> send_generated_events(Exchange& exchange, SpokenAnswer& answer, Speaking& speaking,
                             const InferSpeech& asked, const std::string& model) {
  while (true) {
    std::optional<std::string> bytes = co_await answer.next_bytes();
    if (!bytes) break;
    if (bytes->empty()) continue;
    const std::string event =
        concat("data: ", generated(asked, model, *bytes, generated_rate(asked, answer)), "\n\n");
    if (exchange.begun()) {
      co_await exchange.write(event);
      continue;
    }
    Response head = answer.stream_head("text/event-stream; charset=utf-8", {});
    head.body = event;
    co_await exchange.begin(std::move(head));
    speaking.heard();
  }
  co_await exchange.end();
}

Task<> speak_generated(Services& services, Exchange& exchange, const ServedModel& model,
                       const InferSpeech& asked, bool stream) {
  Speaking speaking(services.metrics);
  Engine& engine = *model.engine;
  SpeechRequest request = infer_speech(services, engine, asked);
  request.delivery = stream ? Delivery::streaming : Delivery::whole;
  Speech speech = co_await submit_speech(services, engine, exchange, std::move(request));
  SpokenAnswer answer(services, engine, exchange, std::move(speech));
  answer.set_encoder(infer_options(asked), !stream);
  std::string last_words;
  try {
    if (stream)
      co_await send_generated_events(exchange, answer, speaking, asked, model.name);
    else
      co_await send_generated(exchange, answer, asked, model.name);
  } catch (const Error& error) {
    if (!stream || !exchange.begun() || error.code() == ErrorCode::cancelled) throw;
    log_cut_off(exchange.request(), error);
    last_words = concat("data: ", error_response(ErrorStyle::kserve, http_error(error), "").body, "\n\n");
  }
  if (last_words.empty()) co_return;
  co_await exchange.write(last_words);
  co_await exchange.end();
}

Task<> generate(Services& services, Exchange& exchange, InferSchema schema, bool stream) {
  const Request& request = exchange.request();
  const Schema<InferSpeech>& fields = *schema;
  const auto read = [&request, &fields] { return read_generate(request, fields); };
  const InferSpeech asked = co_await read_asked(services, exchange, read);
  const ServedModel& model = model_at(services.models, request);
  try {
    co_await speak_generated(services, exchange, model, asked, stream);
  } catch (const Error& error) {
    rethrow_for_kserve(error);
  }
}

template <Tell kTell>
Route kserve_get(std::string path, std::string summary, Access access = Access::client) {
  return {.method = "GET",
          .path = std::move(path),
          .errors = ErrorStyle::kserve,
          .access = access,
          .doc = {.summary = std::move(summary), .answer_types = {"application/json"}},
          .handle = answer_kserve<kTell>,
          .for_operators = access == Access::open};
}

Route kserve_post(std::string path, RouteDoc doc) {
  return {.method = "POST",
          .path = std::move(path),
          .errors = ErrorStyle::kserve,
          .body = BodySize::large,
          .doc = std::move(doc),
          .takes_slot = true};
}

Route infer_route(const ServerConfig& config, const std::string& model) {
  const auto schema = std::make_shared<const Schema<InferSpeech>>(infer_parameters(config));
  Route route =
      kserve_post(model + "/infer",
                  {.summary = "Speaks a text tensor: sound as a tensor of samples or of a file's bytes.",
                   .body = infer_body_docs(schema->docs()),
                   .body_types = {"application/json", "application/octet-stream"},
                   .answer_types = {"application/json", "application/octet-stream"}});
  route.handle = [schema](Services& services, Exchange& exchange) {
    return infer(services, exchange, schema);
  };
  return route;
}

Route generate_route(const ServerConfig& config, const std::string& model, bool stream) {
  const auto schema = std::make_shared<const Schema<InferSpeech>>(generate_schema(config));
  Route route =
      kserve_post(model + (stream ? "/generate_stream" : "/generate"),
                  {.summary = stream ? "Speaks a text: a server-sent event for each piece of the file."
                                     : "Speaks a text: JSON with a file in base64.",
                   .body = schema->docs(),
                   .body_types = json_type(),
                   .answer_types = {stream ? "text/event-stream" : "application/json"}});
  route.handle = [schema, stream](Services& services, Exchange& exchange) {
    return generate(services, exchange, schema, stream);
  };
  return route;
}

}  // namespace

std::vector<Route> kserve_routes(const ServerConfig& config) {
  std::vector<Route> routes;
  routes.push_back(kserve_get<tell_server>("/v2", "Name, version and extensions of the server."));
  routes.push_back(
      kserve_get<tell_live>("/v2/health/live", "Whether the process answers: always 200.", Access::open));
  routes.push_back(kserve_get<tell_ready>("/v2/health/ready", "200 when requests are taken.", Access::open));
  const std::string one = "/v2/models/{model}";
  routes.push_back(kserve_get<tell_model>(one, "The tensors that a model takes and gives."));
  for (const std::string& model : {one, one + kVersion}) {
    routes.push_back(kserve_get<tell_model_ready>(model + "/ready", "200 when the model takes requests."));
    routes.push_back(kserve_get<tell_configuration>(model + "/config", "The same as Triton configures it."));
    routes.push_back(infer_route(config, model));
    routes.push_back(generate_route(config, model, false));
    routes.push_back(generate_route(config, model, true));
  }
  return routes;
}

}  // namespace shoal::server
