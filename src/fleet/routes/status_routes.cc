// Routes that tell how the fleet is.
#include <cctype>
#include <cstdio>

#include "base/error.h"
#include "fleet/routes/fleet_server.h"
#include "fleet/routes/status_json.h"
#include "server/http/fetch.h"

namespace shoal::fleet {
namespace {

using server::Access;
using server::Exchange;
using server::Headers;
using server::Response;
using server::Task;
using server::Value;

Response json(const Value& value, int status = 200) {
  return {.status = status,
          .content_type = "application/json",
          .body = server::write_json(value),
          .headers = {{"cache-control", "no-store"}}};
}

// Null unless it is 200 and JSON.
Value told_in(const std::optional<Response>& answer) {
  if (!answer || answer->status != 200) return {};
  try {
    return server::read_json(answer->body);
  } catch (const Error&) {
    return {};
  }
}

// What each worker answers to GET `target` with this request's key; null for those that are not ready.
Task<std::vector<Value>> told_by_all(const FleetServices& services, const FleetStatus& status,
                                     std::string target, Exchange& exchange) {
  Headers headers;
  for (const char* name : {"authorization", "x-request-id"})
    if (const std::string* value = exchange.request().headers.find(name)) headers.add(name, *value);
  std::vector<server::Peer> peers;
  std::vector<size_t> asked;
  for (size_t i = 0; i < status.workers.size(); ++i) {
    const WorkerStatus& worker = status.workers[i];
    if (worker.state != WorkerState::ready) continue;
    peers.push_back({.host = worker.host, .port = static_cast<uint16_t>(worker.port)});
    asked.push_back(i);
  }
  const std::vector<std::optional<Response>> answers = co_await server::fetch_all(
      exchange.executor(), std::move(peers), std::move(target), std::move(headers), services.patience);
  std::vector<Value> all(status.workers.size());
  for (size_t i = 0; i < asked.size(); ++i) all[asked[i]] = told_in(answers[i]);
  co_return all;
}

Task<> workers(FleetServices& services, Exchange& exchange) {
  const FleetStatus status = services.desk.status();
  const std::vector<Value> figures = co_await told_by_all(services, status, "/v1/stats", exchange);
  Value::Array all;
  for (size_t i = 0; i < figures.size(); ++i) all.push_back(worker_json(status.workers[i], figures[i]));
  const Value balancer = status.balancer_pid == 0
                             ? Value{}
                             : Value{Value::Object{{"pid", {int64_t{status.balancer_pid}}},
                                                   {"restarts", {int64_t{status.balancer_restarts}}}}};
  Response response = json({Value::Object{{"workers", {std::move(all)}},
                                          {"counts", counts_json(status)},
                                          {"balancer", balancer},
                                          {"rolling", rolling_json(status)},
                                          {"uptime_s", {status.uptime_s}}}});
  co_await exchange.respond(std::move(response));
}

// As a server's own, of the first worker that answers, with the queue of all.
Value::Object health_of(const std::vector<Value>& workers) {
  Value::Object members;
  int64_t queue = 0;
  for (const Value& worker : workers) {
    const auto* object = worker.as<Value::Object>();
    if (!object) continue;
    if (const Value* waiting = worker.find("queue"); waiting && waiting->as<int64_t>())
      queue += *waiting->as<int64_t>();
    if (members.empty())
      for (const auto& [name, value] : *object)
        if (name != "status" && name != "state" && name != "uptime_s") members.emplace_back(name, value);
  }
  for (auto& [name, value] : members)
    if (name == "queue") value = {queue};
  return members;
}

Task<> health(FleetServices& services, Exchange& exchange) {
  const FleetStatus status = services.desk.status();
  const std::vector<Value> answers = co_await told_by_all(services, status, "/health", exchange);
  const bool is_well = status.ready() > 0;
  Value::Object members{{"status", {std::string(is_well ? "ok" : "unavailable")}},
                        {"state", {std::string(is_well ? "ready" : "unready")}},
                        {"workers", counts_json(status)},
                        {"uptime_s", {status.uptime_s}}};
  for (auto& member : health_of(answers)) members.push_back(std::move(member));
  Response response = json({std::move(members)}, is_well ? 200 : 503);
  co_await exchange.respond(std::move(response));
}

Task<> ready(FleetServices& services, Exchange& exchange) {
  const int count = services.desk.status().ready();
  Response response =
      json({Value::Object{{"ready", {count > 0}}, {"workers", {int64_t{count}}}}}, count > 0 ? 200 : 503);
  co_await exchange.respond(std::move(response));
}

// The query of a server's own route: a model.
std::string statistics_target(const server::Request& request) {
  const auto model = request.parameter("model");
  if (!model) return "/v1/stats";
  std::string target = "/v1/stats?model=";
  for (const char c : *model) {
    const bool is_plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    char escaped[4] = {c, 0, 0, 0};
    if (!is_plain) std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(c));
    target += escaped;
  }
  return target;
}

Task<> statistics(FleetServices& services, Exchange& exchange) {
  const FleetStatus status = services.desk.status();
  std::vector<Value> answers =
      co_await told_by_all(services, status, statistics_target(exchange.request()), exchange);
  std::erase_if(answers, [](const Value& answer) { return answer.is_null(); });
  if (answers.empty())
    fail(exchange.request().parameter("model") && status.ready() > 0 ? ErrorCode::not_found
                                                                     : ErrorCode::unavailable,
         "no worker has figures to tell");
  Value sum = services.sum(answers);
  // Without a late worker's share counts are smaller than before: readers must be able to tell.
  if (auto* members = std::get_if<Value::Object>(&sum.data))
    members->emplace_back("workers", Value{Value::Object{{"ready", {int64_t{status.ready()}}},
                                                         {"counted", {std::ssize(answers)}}}});
  Response response = json(sum);
  co_await exchange.respond(std::move(response));
}

Task<> metrics(FleetServices& services, Exchange& exchange) {
  Response response{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = exposition(services.desk.status()),
                    .headers = {}};
  co_await exchange.respond(std::move(response));
}

Task<> targets(FleetServices& services, Exchange& exchange) {
  Response response = json(targets_json(services.desk.status()));
  co_await exchange.respond(std::move(response));
}

}  // namespace

std::vector<FleetRoute> status_routes() {
  return {{"GET", "/health", Access::open, {}, health},
          {"GET", "/v1/health", Access::client, server::ErrorStyle::fish, health},
          {"POST", "/v1/health", Access::client, server::ErrorStyle::fish, health},
          {"GET", "/ready", Access::open, {}, ready},
          {"GET", "/v1/workers", Access::client, server::ErrorStyle::plain, workers},
          {"GET", "/v1/stats", Access::client, server::ErrorStyle::plain, statistics},
          {"GET", "/metrics", Access::client, server::ErrorStyle::plain, metrics},
          {"GET", "/http_sd", Access::client, server::ErrorStyle::plain, targets}};
}

}  // namespace shoal::fleet
