// What an operator may ask for. Each answer comes when the fleet has begun; /v1/workers tells how it goes on.
#include "base/error.h"
#include "fleet/routes/fleet_server.h"
#include "fleet/routes/status_json.h"

namespace shoal::fleet {
namespace {

using server::BodyError;
using server::Exchange;
using server::Response;
using server::Task;
using server::Value;

// The body, an object; one that is missing is empty.
Value::Object body_of(const server::Request& request) {
  if (request.body.empty()) return {};
  Value body = server::read_json(request.body);
  auto* object = std::get_if<Value::Object>(&body.data);
  if (!object) throw BodyError(ErrorCode::invalid_argument, "", "expected an object");
  return std::move(*object);
}

// {"worker": "w1"}; empty: none is named.
std::string worker_of(const server::Request& request, bool required) {
  std::string worker;
  for (const auto& [name, value] : body_of(request)) {
    if (name != "worker") throw BodyError(ErrorCode::invalid_argument, name, "there is no such field");
    const auto* text = value.as<std::string>();
    if (!text || text->empty())
      throw BodyError(ErrorCode::invalid_argument, name, "expected a worker's name");
    worker = *text;
  }
  if (required && worker.empty()) throw BodyError(ErrorCode::invalid_argument, "worker", "is required");
  return worker;
}

std::string text_of(const std::string& name, const Value& value) {
  if (const auto* text = value.as<std::string>()) return *text;
  if (value.as<bool>() || value.as<int64_t>() || value.as<double>()) return server::write_json(value);
  throw BodyError(ErrorCode::invalid_argument, name, "expected a text, a number, true or false");
}

Settings settings_of(const server::Request& request) {
  Settings settings;
  for (const auto& [name, value] : body_of(request)) settings[name] = text_of(name, value);
  return settings;
}

// Asks the fleet and tells how it is then.
Task<> answer_order(FleetServices& services, Exchange& exchange, Order order, int status) {
  const auto work = [&services, &order] { services.desk.ask(std::move(order)); };
  co_await services.waiting.run(exchange.executor(), work);
  const FleetStatus now = services.desk.status();
  const Value body{
      Value::Object{{"success", {true}}, {"counts", counts_json(now)}, {"rolling", rolling_json(now)}}};
  Response response{
      .status = status, .content_type = "application/json", .body = server::write_json(body), .headers = {}};
  co_await exchange.respond(std::move(response));
}

constexpr int kDone = 200, kBegun = 202;

Task<> drain(FleetServices& services, Exchange& exchange) {
  Order order{.what = Order::What::drain, .worker = worker_of(exchange.request(), true)};
  return answer_order(services, exchange, std::move(order), kDone);
}

Task<> resume(FleetServices& services, Exchange& exchange) {
  Order order{.what = Order::What::resume, .worker = worker_of(exchange.request(), true)};
  return answer_order(services, exchange, std::move(order), kDone);
}

Task<> restart(FleetServices& services, Exchange& exchange) {
  Order order{.what = Order::What::restart, .worker = worker_of(exchange.request(), false)};
  return answer_order(services, exchange, std::move(order), kBegun);
}

Task<> reload(FleetServices& services, Exchange& exchange) {
  Order order{.what = Order::What::reload, .settings = settings_of(exchange.request())};
  return answer_order(services, exchange, std::move(order), kBegun);
}

}  // namespace

std::vector<FleetRoute> admin_routes() {
  using server::Access, server::ErrorStyle;
  return {{"POST", "/v1/admin/drain", Access::admin, ErrorStyle::plain, drain},
          {"POST", "/v1/admin/resume", Access::admin, ErrorStyle::plain, resume},
          {"POST", "/v1/admin/restart", Access::admin, ErrorStyle::plain, restart},
          {"POST", "/v1/admin/reload", Access::admin, ErrorStyle::plain, reload}};
}

}  // namespace shoal::fleet
