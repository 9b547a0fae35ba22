#include "server/router.h"

#include <algorithm>

#include "base/error.h"
#include "server/access/offered_protocols.h"
#include "server/access/request_id.h"
#include "server/http/body_decoder.h"
#include "server/http/with_headers.h"
#include "server/observe/log_sink.h"
#include "server/routes/refused_paths.h"
#include "server/routes/route_pattern.h"
#include "server/routes/wanted_models.h"

namespace shoal::server {
namespace {

constexpr int64_t kSmallBody = 1 << 20;
constexpr int kRetryAfter_s = 1;  // when connections or memory have run out

// "//v1//models/" -> "/v1/models": what clients make of a base URL that ends with a slash.
std::string without_idle_slashes(std::string_view path) {
  std::string tidy;
  for (const char c : path)
    if (c != '/' || !tidy.ends_with('/')) tidy += c;
  if (tidy.size() > 1 && tidy.ends_with('/')) tidy.pop_back();
  return tidy;
}

// The limit of requests at the models at once: further ones would only wait here, each with its memory. A
// request whose reader is still reading has already left the engine, so there is room for twice the number
// that the models speak for.
int64_t most_requests(const Services& services) {
  if (services.config.max_concurrency > 0) return services.config.max_concurrency;
  int64_t most = 0;
  for (const ServedModel& model : services.models.all()) {
    const EngineConfig engine = model.engine->config();
    most += engine.max_queue + 2 * int64_t{engine.streams()};
  }
  return most;
}

}  // namespace

ErrorStyle style_of_path(std::string_view path) {
  if (path.starts_with("/v1/text-to-speech/") || path.starts_with("/v1/voices"))
    return ErrorStyle::elevenlabs;
  if (path.starts_with("/v1/audio/") || path.starts_with("/v1/models")) return ErrorStyle::openai;
  if (path.starts_with("/dev/")) return ErrorStyle::kokoro;
  if (path.starts_with("/v1/admin/")) return ErrorStyle::plain;
  if (path == "/v2" || path.starts_with("/v2/")) return ErrorStyle::kserve;
  if (path == "/model" || path.starts_with("/model/") || path.starts_with("/wallet/"))
    return ErrorStyle::fish;
  return path.starts_with("/v1/") ? ErrorStyle::fish : ErrorStyle::plain;
}

Router::Router(Services& services, std::vector<Route> routes, ApiKeys keys, ApiKeys admin_keys)
    : services_(services),
      routes_(std::move(routes)),
      gate_(std::move(keys), std::move(admin_keys), services_.config.cors_origins, services_.config.listen),
      slots_(services_.config.max_concurrency_per_key) {
  services_.usage.set_limits(gate_.limits());
}

Activity Router::activity() const { return {.open = slots_.taken(), .ended = slots_.given_back()}; }

const Route* Router::find(std::string_view method, std::string_view path) const {
  const Route* found = nullptr;
  for (const Route& route : routes_) {
    if (route.access == Access::admin && !gate_.has_admin()) continue;
    const bool same_method = route.method == method || (method == "HEAD" && route.method == "GET");
    if (!same_method || !match_path(route.path, path)) continue;
    if (route.path == path) return &route;  // an exact path is stronger than a pattern
    if (!found || route.path.size() > found->path.size()) found = &route;  // the pattern that says more
  }
  return found;
}

std::string Router::methods_of(std::string_view path) const {
  std::string methods;
  for (const std::string_view method : {"GET", "HEAD", "POST", "DELETE"}) {
    if (!find(method, path)) continue;
    if (!methods.empty()) methods += ", ";
    methods += method;
  }
  return methods;
}

Headers Router::common_headers(const Request& request) const {
  Headers headers = gate_.cross_origin().answer_headers(request);
  if (!request.id.empty()) headers.add("x-request-id", request.id);
  return headers;
}

Verdict Router::refusal(const Request& head, ErrorStyle style, const HttpError& error, Headers headers) {
  Response response = error_response(style, error, head.id);
  for (const Headers& more : {headers, common_headers(head)}) {
    for (const auto& [name, value] : more) response.headers.add(name, value);
  }
  services_.metrics.count_error(name_of(error.code));
  return {.refusal = std::move(response)};
}

Verdict Router::judge_without_route(Request& head) {
  const ErrorStyle style = style_of_path(head.path);
  const std::string methods = methods_of(head.path);
  if (methods.empty()) {
    if (const RefusedPath* refused = find_refused_path(head.path))
      return refusal(head, ErrorStyle::kokoro, {404, ErrorCode::not_found, std::string(refused->why)});
    return refusal(head, style,
                   {404, ErrorCode::not_found, "there is nothing at this path; /docs lists what there is"});
  }
  const std::string allowed = methods + ", OPTIONS";
  if (head.method != "OPTIONS") {
    return refusal(head, style,
                   {405, ErrorCode::invalid_argument, "this path takes " + methods + ", not " + head.method},
                   {{"allow", allowed}});
  }
  Response response{.status = 204, .headers = {{"allow", allowed}}};
  for (const Headers& more : {gate_.cross_origin().preflight_headers(head, methods), common_headers(head)}) {
    for (const auto& [name, value] : more) response.headers.add(name, value);
  }
  return {.answer = std::move(response), .max_body_bytes = kSmallBody};
}

int64_t Router::body_limit(const Route& route) const {
  switch (route.body) {
    case BodySize::none:
    case BodySize::small:
      return kSmallBody;  // GET with a body is legal; it is read and ignored
    case BodySize::large:
      return int64_t{services_.config.max_body_mb} << 20;
  }
  return 0;
}

// The routes of administrators have one spelling: a proxy may guard them by it.
void Router::tidy_path(Request& head) const {
  std::string path = without_idle_slashes(head.path);
  if (path == head.path) return;
  const auto means = [&](const Route& route) {
    return route.access != Access::admin && match_path(route.path, path);
  };
  if (std::ranges::any_of(routes_, means)) head.path = std::move(path);
}

Verdict Router::judge(Request& head, bool upgrade) {
  head.id = request_id_of(head);
  tidy_path(head);
  const Route* route = find(head.method, head.path);
  if (!route) return judge_without_route(head);
  head.route = route->path;
  Verdict verdict = judge_route(*route, head, upgrade);
  verdict.for_operators = route->for_operators;
  return verdict;
}

Verdict Router::judge_route(const Route& route, Request& head, bool upgrade) {
  if (auto refused = gate_.refuse(route.access, head, upgrade))
    return refusal(head, route.errors, refused->error, std::move(refused->headers));
  if (services_.draining && route.access != Access::open && !route.answers_while_draining) {
    return refusal(head, route.errors,
                   http_error(Error(ErrorCode::unavailable, "the server is shutting down")));
  }
  if (upgrade != static_cast<bool>(route.converse)) {
    const std::string message =
        upgrade ? "this path is no WebSocket" : "this path is a WebSocket: ask for an upgrade";
    return refusal(head, route.errors, {upgrade ? 400 : 426, ErrorCode::invalid_argument, message},
                   {{"upgrade", "websocket"}});
  }
  Verdict welcome{.max_body_bytes = body_limit(route), .websocket = upgrade};
  if (!upgrade) return welcome;
  const OfferedProtocols offered = offered_protocols(head.headers);
  if (offered.realtime) welcome.subprotocol = kRealtimeProtocol;
  if (offered.live) welcome.subprotocol = kLiveProtocol;
  return welcome;
}

HttpError Router::failure_of(const Request& request, std::exception_ptr thrown) {
  const auto counted = [&](const Error& error) {
    services_.metrics.count_error(name_of(error.code()));
    const bool ours = error.code() == ErrorCode::internal || error.code() == ErrorCode::io;
    if (ours) log_failure(request, error.message());
    return http_error(error);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const OverLimit& error) {
    HttpError told = counted(error);
    told.retry_after_s = error.retry_after_s();
    return told;
  } catch (const Error& error) {
    return counted(error);
  } catch (const std::bad_alloc&) {
    return counted(Error(ErrorCode::resource_exhausted, "out of memory"));
  } catch (const std::exception& error) {
    return counted(Error(ErrorCode::internal, error.what()));
  }
}

namespace {

void tell_why_cut_off(const Request& request, const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    log_cut_off(request, error);
  } catch (const std::exception& error) {
    log_cut_off(request, Error(ErrorCode::internal, error.what()));
  } catch (...) {
  }
}

}  // namespace

Task<> Router::handle_with_models(const Route& route, Exchange& exchange) {
  for (int attempt = 1;; ++attempt) {
    const auto held = services_.models.held();
    std::exception_ptr thrown;
    try {
      co_await route.handle(services_, exchange);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (!thrown) co_return;
    // A model may have left the list after the request had found it.
    const bool changed = services_.models.held() != held && is_unavailable(thrown);
    if (exchange.begun() || attempt == kMostAttempts || !(changed || lacked_a_model(services_, thrown)))
      std::rethrow_exception(thrown);
    co_await until_models_are_there(services_, exchange.executor());
  }
}

RequestSlots::Slot Router::enter(const Request& request) {
  RequestSlots::Slot slot = slots_.take(request.client, most_requests(services_));
  services_.usage.add_request(request.client);
  return slot;
}

std::function<Headers()> Router::limit_headers(const Route& route, const Request& request) const {
  if (!route.takes_slot) return {};
  return [this, &request] { return services_.usage.headers(request.client); };
}

Task<> Router::handle(Exchange& bare) {
  const Route& route = *find(bare.request().method, bare.request().path);
  const auto held = services_.models.held();
  WithHeaders exchange(bare, common_headers(bare.request()), limit_headers(route, bare.request()));
  std::exception_ptr thrown;
  try {
    std::optional<RequestSlots::Slot> slot;
    if (route.takes_slot) slot.emplace(enter(exchange.request()));
    co_await handle_with_models(route, exchange);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) co_return;
  const HttpError error = failure_of(bare.request(), thrown);
  // A started answer cannot become an error: it is cut off, so that the client sees that it is incomplete.
  if (exchange.begun()) tell_why_cut_off(bare.request(), thrown);
  if (exchange.begun() || error.code == ErrorCode::cancelled) co_return;
  co_await exchange.respond(error_response(route.errors, error, bare.request().id));
}

Task<> Router::converse(WebSocket& socket) {
  const Route& route = *find("GET", socket.request().path);
  const auto held = services_.models.held();
  std::exception_ptr thrown;
  try {
    std::optional<RequestSlots::Slot> slot;
    if (route.takes_slot) slot.emplace(enter(socket.request()));
    co_await route.converse(services_, socket);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) co_return;
  const HttpError error = failure_of(socket.request(), thrown);
  if (error.code == ErrorCode::cancelled) co_return;
  const bool try_later = error.code == ErrorCode::resource_exhausted || error.code == ErrorCode::unavailable;
  const uint16_t close_code = try_later ? 1013 : 1011;
  co_await socket.close(close_code, error.message);
}

Response Router::refuse(Request& head, int status, std::string_view message) {
  const ErrorCode code = status == 413 || status == 431 ? ErrorCode::too_large
                         : status == 408                ? ErrorCode::deadline_exceeded
                         : status == 415                ? ErrorCode::unsupported
                         : status >= 500                ? ErrorCode::unavailable
                                                        : ErrorCode::invalid_argument;
  if (head.id.empty()) head.id = request_id_of(head);  // judge() has not seen it
  const Route* route = find(head.method, head.path);
  const ErrorStyle style = route ? route->errors : style_of_path(head.path);
  HttpError error{status, code, std::string(message)};
  if (status == 503) error.retry_after_s = kRetryAfter_s;
  Headers more;
  if (status == 415) more.add("accept-encoding", std::string(BodyDecoder::kNames));  // RFC 9110 15.5.16
  return *refusal(head, style, error, std::move(more)).refusal;
}

void Router::record(const Request& request, const RequestRecord& record) {
  services_.metrics.record(request.route, record);
  log_request(request, record);
}

}  // namespace shoal::server
