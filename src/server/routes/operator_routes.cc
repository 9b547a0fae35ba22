// What operators ask: does it live, does it speak, how busy is it; and what the routes are.
#include <memory>
#include <mutex>

#include "base/error.h"
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

bool takes_requests(const Services& services, const Health& engine) {
  return !services.draining && (engine.state == EngineState::ready || engine.state == EngineState::reloading);
}

Response health(Services& services, const Request&) {
  const Health engine = services.engine.health();
  const bool loaded = !engine.model.empty();
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Value{} : Value{text}; };
  return json_response({{"status", word("ok")},
                        {"state", {state_of(engine, services.draining)}},
                        {"device", text_or_null(engine.device)},
                        {"vram", video_memory_json(engine)},
                        {"model_loaded", {loaded}},
                        {"model", text_or_null(engine.model)},
                        {"precision", text_or_null(engine.precision)},
                        {"queue", {engine.statistics.preparing + engine.statistics.waiting}},
                        {"uptime_s", {engine.uptime_s}},
                        {"version", word(SHOAL_VERSION)}});
}

Response ready(Services& services, const Request&) {
  const Health engine = services.engine.health();
  const bool is_ready = takes_requests(services, engine);
  Response response = json_response({{"ready", {is_ready}}, {"state", {state_of(engine, services.draining)}}},
                                    is_ready ? 200 : 503);
  if (!is_ready) response.headers.add("retry-after", "1");
  return response;
}

Response metrics(Services& services, const Request&) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = services.metrics.exposition(services.engine.health(), services.transport()),
          .headers = {}};
}

Value::Object statistics(Services& services) {
  Value figures = statistics_json(services.engine.health(), services.transport(), services.draining);
  return std::move(std::get<Value::Object>(figures.data));
}

Response stats(Services& services, const Request&) { return json_response(statistics(services)); }

// One engine in one process: others are other servers.
Response workers(Services& services, const Request&) {
  Value::Object only = statistics(services);
  only.emplace(only.begin(), "id", Value{int64_t{0}});
  return json_response({{"workers", {Value::Array{{std::move(only)}}}}});
}

Response test_gpu(Services& services, const Request&) {
  const SelfTest test = services.engine.self_test();
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

Route get(std::string path, Access access, std::string summary, std::string answer_type) {
  return {.method = "GET",
          .path = std::move(path),
          .access = access,
          .doc = {.summary = std::move(summary), .answer_types = {std::move(answer_type)}}};
}

template <Make kMake>
Route told(std::string path, Access access, std::string summary,
           std::string answer_type = "application/json") {
  Route route = get(std::move(path), access, std::move(summary), std::move(answer_type));
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
      told<stats>("/v1/stats", Access::client, "Queue, batch, cache, memory and device in figures."),
      told<workers>("/v1/workers", Access::client, "The same for each engine of this server; there is one."),
      told<openapi>("/openapi.json", Access::open, "This document."),
      docs_route(),
      reload_route()};
  if (config.metrics)
    routes.push_back(told<metrics>("/metrics", Access::client, "Figures for Prometheus.", "text/plain"));
  Route test = get("/test/gpu", Access::client,
                   "Computes something on the device and compares it with the CPU.", "application/json");
  test.handle = answer_on_worker<test_gpu>;
  routes.push_back(std::move(test));
  return routes;
}

}  // namespace shoal::server
