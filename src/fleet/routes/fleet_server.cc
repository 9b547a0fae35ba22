#include "fleet/routes/fleet_server.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "server/access/request_id.h"
#include "server/http/with_headers.h"

namespace shoal::fleet {
namespace {

using server::Exchange;
using server::Headers;
using server::HttpError;
using server::Request;
using server::Response;
using server::Task;
using server::Verdict;

constexpr int64_t kMostBodyBytes = 1 << 20;

void add_headers(Response& response, const Headers& more) {
  for (const auto& [name, value] : more) response.headers.add(name, value);
}

HttpError error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return server::http_error(error);
  } catch (const std::exception& error) {
    log(LogLevel::error, "a route of the fleet: ", error.what());
    return server::http_error(Error(ErrorCode::internal, error.what()));
  }
}

}  // namespace

const std::vector<FleetRoute>& fleet_routes() {
  static const std::vector<FleetRoute> routes = [] {
    std::vector<FleetRoute> all = status_routes();
    for (FleetRoute& route : admin_routes()) all.push_back(std::move(route));
    return all;
  }();
  return routes;
}

std::vector<std::string> fleet_paths() {
  std::vector<std::string> paths;
  for (const FleetRoute& route : fleet_routes())
    if (std::ranges::count(paths, route.path) == 0) paths.push_back(route.path);
  return paths;
}

const FleetRoute* FleetServer::find(std::string_view method, std::string_view path) const {
  for (const FleetRoute& route : fleet_routes()) {
    if (route.access == server::Access::admin && !services_.gate.has_admin()) continue;
    const bool same_method = route.method == method || (method == "HEAD" && route.method == "GET");
    if (same_method && route.path == path) return &route;
  }
  return nullptr;
}

Response FleetServer::told(server::ErrorStyle style, const HttpError& error, const Request& head,
                           Headers more) const {
  Response response = server::error_response(style, error, head.id);
  add_headers(response, more);
  add_headers(response, common_headers(head));
  return response;
}

Headers FleetServer::common_headers(const Request& head) const {
  Headers headers = services_.gate.cross_origin().answer_headers(head);
  headers.add("x-request-id", head.id);
  return headers;
}

Verdict FleetServer::judge_without_route(const Request& head) const {
  std::string methods;
  for (const char* method : {"GET", "HEAD", "POST"})
    if (find(method, head.path)) methods += concat(methods.empty() ? "" : ", ", method);
  if (methods.empty())
    return {.refusal = told(server::ErrorStyle::plain,
                            {404, ErrorCode::not_found, "the fleet has nothing at this path"}, head)};
  const std::string allowed = methods + ", OPTIONS";
  if (head.method == "OPTIONS") {
    Response response{.status = 204, .headers = {{"allow", allowed}}};
    add_headers(response, services_.gate.cross_origin().preflight_headers(head, methods));
    add_headers(response, common_headers(head));
    return {.answer = std::move(response), .max_body_bytes = kMostBodyBytes};
  }
  return {.refusal = told(server::ErrorStyle::plain,
                          {405, ErrorCode::invalid_argument, "this path takes " + methods}, head,
                          {{"allow", allowed}})};
}

Verdict FleetServer::judge(Request& head, bool upgrade) {
  head.id = server::request_id_of(head);
  const FleetRoute* route = find(head.method, head.path);
  if (!route) return judge_without_route(head);
  head.route = route->path;
  if (auto refused = services_.gate.refuse(route->access, head, upgrade))
    return {.refusal = told(route->errors, refused->error, head, std::move(refused->headers))};
  if (upgrade)
    return {.refusal =
                told(route->errors, {400, ErrorCode::invalid_argument, "this path is no WebSocket"}, head)};
  return {.max_body_bytes = kMostBodyBytes, .for_operators = true};
}

Task<> FleetServer::handle(Exchange& bare) {
  const Request& request = bare.request();
  const FleetRoute& route = *find(request.method, request.path);
  server::WithHeaders exchange(bare, common_headers(request));
  std::exception_ptr thrown;
  try {
    co_await route.handle(services_, exchange);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown || exchange.begun()) co_return;
  const HttpError error = error_of(thrown);
  if (error.code == ErrorCode::cancelled) co_return;
  Response response = server::error_response(route.errors, error, request.id);
  co_await exchange.respond(std::move(response));
}

Task<> FleetServer::converse(server::WebSocket& socket) {
  constexpr uint16_t kOurFault = 1011;
  co_await socket.close(kOurFault, "the fleet has no WebSocket");
}

Response FleetServer::refuse(Request& head, int status, std::string_view message) {
  if (head.id.empty()) head.id = server::request_id_of(head);
  const ErrorCode code = status >= 500 ? ErrorCode::unavailable : ErrorCode::invalid_argument;
  return told(server::ErrorStyle::plain, {status, code, std::string(message)}, head);
}

void FleetServer::record(const Request& request, const server::RequestRecord& record) {
  log(LogLevel::debug, "fleet: ", request.method, " ", request.route, " ", record.status);
}

}  // namespace shoal::fleet
