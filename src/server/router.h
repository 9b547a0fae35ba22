// From a request to its handler, and from any outcome to an answer.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/access/gate.h"
#include "server/http/application.h"
#include "server/idle_memory.h"
#include "server/request_slots.h"
#include "server/routes/services.h"

namespace shoal::server {

class Router : public Application {
 public:
  // The table stays as it is; paths are unique for each method. Without admin keys its admin routes are left
  // out. Throws invalid_argument when a key is both a client's and an administrator's.
  Router(Services& services, std::vector<Route> routes, ApiKeys keys, ApiKeys admin_keys);

  Verdict judge(Request& head, bool upgrade) override;
  Task<> handle(Exchange& exchange) override;
  Task<> converse(WebSocket& socket) override;
  Response refuse(Request& head, int status, std::string_view message) override;
  void record(const Request& request, const RequestRecord& record) override;

  // May be called by any thread, as all that follow.
  Activity activity() const;
  // A place among the requests that keep models busy, counted for the client's key. Throws
  // Error(resource_exhausted).
  RequestSlots::Slot enter(const Request& request);
  bool has_keys() const { return gate_.has_keys(); }

 private:
  // Calls the route; again when it lacked a model that had been unloaded.
  Task<> handle_with_models(const Route& route, Exchange& exchange);
  // `head` with its path normalised: without redundant slashes.
  void tidy_path(Request& head) const;
  Verdict judge_route(const Route& route, Request& head, bool upgrade);
  const Route* find(std::string_view method, std::string_view path) const;
  std::string methods_of(std::string_view path) const;
  Verdict refusal(const Request& head, ErrorStyle style, const HttpError& error, Headers headers = {});
  Verdict judge_without_route(Request& head);
  int64_t body_limit(const Route& route) const;
  Headers common_headers(const Request& request) const;
  // What is left of the client's limits, on routes that they are for.
  std::function<Headers()> limit_headers(const Route& route, const Request& request) const;
  // Converts an exception of a handler to an answer; counts it, and logs it if it is our fault.
  HttpError failure_of(const Request& request, std::exception_ptr thrown);

  Services& services_;
  const std::vector<Route> routes_;
  const Gate gate_;
  RequestSlots slots_;
};

// The style of errors for unknown paths: that of the API they resemble.
ErrorStyle style_of_path(std::string_view path);

}  // namespace shoal::server
