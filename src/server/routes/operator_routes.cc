// Routes for operators: is it alive, can it speak, how busy is it; and the documentation of the routes.
#include <algorithm>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "base/version.h"
#include "report/engine_json.h"
#include "report/json_parts.h"
#include "server/observe/model_health.h"
#include "server/routes/docs_page.h"
#include "server/routes/reload_route.h"
#include "server/routes/services.h"
#include "server/routes/statistics_json.h"

namespace shoal::server {
namespace {

Value word(std::string_view text) { return {std::string(text)}; }

Response json_response(Value::Object members, int status = 200) {
  return {.status = status,
          .content_type = "application/json",
          .body = write_json({std::move(members)}),
          .headers = {{"cache-control", "no-store"}}};
}

// In the order of /v1/models.
std::vector<ModelHealth> health_of_models(const Services& services) {
  std::vector<ModelHealth> all;
  for (const ServedModel& model : services.models.all()) all.push_back({model.name, model.engine->health()});
  return all;
}

// The model that holds the server back: the first that takes no requests, else the first.
const Health& weakest_of(const std::vector<ModelHealth>& models) {
  const auto found =
      std::ranges::find_if(models, [](const ModelHealth& model) { return !takes_requests(model.health); });
  return (found == models.end() ? models.front() : *found).health;
}

int64_t queue_of(const Health& engine) { return engine.statistics.preparing + engine.statistics.waiting; }

Value state_by_model(const std::vector<ModelHealth>& models, bool draining) {
  Value::Array all;
  for (const auto& [name, engine] : models) {
    Value::Object members{{"id", {name}},
                          {"state", {state_of(engine, draining)}},
                          {"model", text_or_null(engine.model)},
                          {"device", text_or_null(engine.device)},
                          {"queue", {queue_of(engine)}}};
    report::append(members, report::format_members(engine.formats));
    all.push_back({std::move(members)});
  }
  return {std::move(all)};
}

// Fields for a single model describe the first one.
Response health(Services& services, const Request&) {
  const std::vector<ModelHealth> models = health_of_models(services);
  const Health& engine = models.front().health;
  int64_t queue = 0;
  for (const ModelHealth& model : models) queue += queue_of(model.health);
  const bool loaded =
      std::ranges::all_of(models, [](const ModelHealth& model) { return is_loaded(model.health); });
  Value::Object members{{"status", word("ok")},
                        {"state", {state_of(weakest_of(models), services.draining)}},
                        {"device", text_or_null(engine.device)},
                        {"vram", video_memory_json(engine)},
                        {"model_loaded", {loaded}},
                        {"model", text_or_null(engine.model)},
                        {"queue", {queue}},
                        {"uptime_s", {engine.uptime_s}},
                        {"models", state_by_model(models, services.draining)},
                        {"version", word(version())}};
  report::append(members, report::format_members(engine.formats));
  return json_response(std::move(members));
}

Response ready(Services& services, const Request&) {
  const std::vector<ModelHealth> models = health_of_models(services);
  const Health& weakest = weakest_of(models);
  const bool is_ready = !services.draining && takes_requests(weakest);
  Response response = json_response(
      {{"ready", {is_ready}}, {"state", {state_of(weakest, services.draining)}}}, is_ready ? 200 : 503);
  if (!is_ready) response.headers.add("retry-after", "1");
  return response;
}

// Of a server without keys the engine's own figures say it all.
std::vector<KeyFigures> key_figures(const Services& services) {
  std::vector<KeyFigures> figures;
  for (KeyUsage& usage : services.usage.all()) {
    if (!usage.key.empty())
      figures.push_back({std::move(usage.key), usage.requests, usage.characters, usage.sound_s});
  }
  return figures;
}

Value::Object usage_json(const KeyUsage& usage) {
  Value::Object limits;
  for (const KeyLimitState& state : usage.limits)
    limits.emplace_back(
        std::string(state.kind->name),
        Value{Value::Object{{"limit", {state.limit}}, {"left", {state.left}}, {"reset_s", {state.reset_s}}}});
  return {{"key", text_or_null(usage.key)},
          {"requests", {static_cast<int64_t>(usage.requests)}},
          {"characters", {static_cast<int64_t>(usage.characters)}},
          {"audio_s", {usage.sound_s}},
          {"limits", {std::move(limits)}}};
}

Response own_usage(Services& services, const Request& request) {
  return json_response(usage_json(services.usage.of(request.client)));
}

Response usage_of_all(Services& services, const Request&) {
  Value::Array keys;
  for (const KeyUsage& usage : services.usage.all()) keys.push_back({usage_json(usage)});
  return json_response({{"keys", {std::move(keys)}}});
}

Response metrics(Services& services, const Request&) {
  const std::vector<KeyFigures> keys = key_figures(services);
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = services.metrics.exposition(health_of_models(services), services.transport(),
                                              services.draining, keys),
          .headers = {}};
}

Value::Object statistics(Services& services, const ServedModel& model) {
  Value figures = statistics_json(model.engine->health(), services.transport(), services.draining);
  const auto models = services.models.all();
  const auto place = std::ranges::find(models, model.name, &ServedModel::name) - models.begin();
  Value::Object& members = std::get<Value::Object>(figures.data);
  members.emplace(members.begin(), "name", Value{model.name});
  members.emplace(members.begin(), "id", Value{int64_t{place}});
  return std::move(members);
}

// Figures of each model.
Value::Array statistics_of_models(Services& services) {
  Value::Array all;
  for (const ServedModel& model : services.models.all()) all.push_back({statistics(services, model)});
  return all;
}

const ServedModel& asked_model(const Services& services, const Request& request) {
  return services.models.named(request.parameter("model").value_or(""));
}

// Of the model that the query names; without one of the first, and beside it of all.
Response stats(Services& services, const Request& request) {
  Value::Object figures = statistics(services, asked_model(services, request));
  if (!request.parameter("model")) figures.emplace_back("models", Value{statistics_of_models(services)});
  return json_response(std::move(figures));
}

Response workers(Services& services, const Request&) {
  return json_response({{"workers", {statistics_of_models(services)}}});
}

Response test_gpu(Services& services, const Request& request) {
  const SelfTest test = asked_model(services, request).engine->self_test();
  Value::Object members{{"device", {test.device}},
                        {"gpu_available", {test.gpu_available}},
                        {"mps_available", {false}},
                        {"gpu_memory_allocated_mb", {static_cast<double>(test.gpu_memory_bytes) / (1 << 20)}},
                        {"test_tensor_device", {test.device}},
                        {"pipeline_device", {test.device}}};
  if (test.error.empty()) return json_response(std::move(members));
  members.emplace_back("error", Value{test.error});
  return json_response(std::move(members), 500);
}

Response openapi(Services& services, const Request&) {
  return {.content_type = "application/json", .body = services.openapi, .headers = {}};
}

using Make = Response (*)(Services&, const Request&);

template <Make kMake>
Task<> answer(Services& services, Exchange& exchange) {
  Response response = kMake(services, exchange.request());
  co_await exchange.respond(std::move(response));
}

template <Make kMake>
Task<> answer_on_worker(Services& services, Exchange& exchange) {
  const auto make = [&services, &exchange] { return kMake(services, exchange.request()); };
  Response response = co_await services.workers.run(exchange.executor(), make);
  co_await exchange.respond(std::move(response));
}

FieldDoc model_parameter(std::string help) {
  return {.name = "model", .type = "string", .help = std::move(help)};
}

Route get(std::string path, Access access, std::string summary, std::string answer_type) {
  return {.method = "GET",
          .path = std::move(path),
          .access = access,
          .doc = {.summary = std::move(summary), .answer_types = {std::move(answer_type)}}};
}

template <Make kMake>
Route told(std::string path, Access access, std::string summary, std::string answer_type = "application/json",
           std::vector<FieldDoc> query = {}) {
  Route route = get(std::move(path), access, std::move(summary), std::move(answer_type));
  route.doc.query = std::move(query);
  route.handle = answer<kMake>;
  return route;
}

// The page follows from the document, which never changes: it is made once.
struct DocsPage {
  std::once_flag once;
  std::string html;
};

Task<> show_docs(Services& services, Exchange& exchange, std::shared_ptr<DocsPage> page) {
  std::call_once(page->once, [&] { page->html = docs_page(services.openapi); });
  Response response{.content_type = "text/html; charset=utf-8", .body = page->html, .headers = {}};
  response.headers.add(
      "content-security-policy",
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'");
  response.headers.add("x-content-type-options", "nosniff");
  co_await exchange.respond(std::move(response));
}

Route docs_route() {
  Route route = get("/docs", Access::open, "All routes with their fields, for people.", "text/html");
  const auto page = std::make_shared<DocsPage>();
  route.handle = [page](Services& services, Exchange& exchange) {
    return show_docs(services, exchange, page);
  };
  return route;
}

}  // namespace

std::vector<Route> operator_routes(const ServerConfig& config) {
  std::vector<Route> routes = {
      told<health>("/health", Access::open, "Whether the process answers: always 200."),
      told<ready>("/ready", Access::open,
                  "200 when requests are taken; 503 before the warm-up and while it shuts down."),
      told<stats>(
          "/v1/stats", Access::client,
          "Queue, batch, cache, memory and device in figures, those of the first model, and of all in "
          "`models`.",
          "application/json", {model_parameter("a model of /v1/models, alone")}),
      told<workers>("/v1/workers", Access::client, "The same for each model of this server."),
      told<own_usage>("/v1/usage", Access::client,
                      "Requests, characters and seconds of sound of the asking key since the start, and "
                      "what is left of its limits."),
      told<usage_of_all>("/v1/admin/usage", Access::admin, "The same of every key that has been used."),
      reload_route()};
  if (config.metrics) {
    routes.push_back(told<metrics>("/metrics", Access::client, "Figures for Prometheus.", "text/plain"));
    routes.back().answers_while_draining = true;  // operators then want to see the remaining requests
  }
  for (Route& route : routes) route.for_operators = true;
  routes.push_back(told<openapi>("/openapi.json", Access::open, "This document."));
  routes.push_back(docs_route());
  Route test = get("/test/gpu", Access::client,
                   "Computes something on the device and compares it with the CPU.", "application/json");
  test.doc.query = {model_parameter("a model of /v1/models; default: the first")};
  test.handle = answer_on_worker<test_gpu>;
  test.takes_slot = true;
  routes.push_back(std::move(test));
  return routes;
}

}  // namespace shoal::server
