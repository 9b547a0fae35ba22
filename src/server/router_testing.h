// A router around an engine that was never started, for the tests of routing and of access.
#pragma once

#include <atomic>
#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>
#include <memory>

#include "server/router.h"
#include "server/routes/routes_testing.h"

namespace shoal::server::router_testing {

using testing::Answered;
using testing::FakeExchange;

inline constexpr std::string_view kStream = "/v1/audio/stream";

inline Route route(std::string method, std::string path, ErrorStyle errors, Access access,
                   std::function<Task<>(Services&, Exchange&)> handle) {
  return {.method = std::move(method),
          .path = std::move(path),
          .errors = errors,
          .access = access,
          .handle = std::move(handle)};
}

inline Task<> say_path(Services&, Exchange& exchange) {
  Response answer{.content_type = "text/plain", .body = exchange.request().path};
  co_await exchange.respond(std::move(answer));
}

inline Task<> break_down(Services&, Exchange&) {
  throw std::runtime_error("secret of the inside");
  co_return;
}

inline Task<> run_out(Services&, Exchange&) {
  fail(ErrorCode::resource_exhausted, "queue: full");
  co_return;
}

inline Task<> break_in_the_middle(Services&, Exchange& exchange) {
  Response head{.body = "half"};
  co_await exchange.begin(std::move(head));
  fail(ErrorCode::internal, "the other half is lost");
}

inline Task<> complain(Services&, Exchange&) {
  throw BodyError(ErrorCode::invalid_argument, "items[2].voice", "expected a text, got 3");
  co_return;
}

class RouterTest : public ::testing::Test {
 protected:
  // speaking: POST /v1/tts keeps a model busy.
  void make(ServerConfig config = {}, bool speaking = false) {
    config_ = std::move(config);
    std::vector<Route> routes = {
        route("GET", "/health", ErrorStyle::plain, Access::open, say_path),
        route("GET", "/v1/models", ErrorStyle::openai, Access::client, say_path),
        route("GET", "/v1/models/{id}", ErrorStyle::openai, Access::client, say_path),
        route("GET", "/v1/models/exact", ErrorStyle::openai, Access::client, run_out),
        route("POST", "/v1/audio/speech", ErrorStyle::openai, Access::client, complain),
        route("POST", "/v1/tts", ErrorStyle::fish, Access::client, break_down),
        route("POST", "/v1/half", ErrorStyle::plain, Access::client, break_in_the_middle),
        route("POST", "/v1/admin/reload", ErrorStyle::plain, Access::admin, say_path),
    };
    routes.back().body = BodySize::large;
    routes.push_back(route("GET", "/metrics", ErrorStyle::plain, Access::client, say_path));
    routes.back().answers_while_draining = true;
    routes.back().for_operators = true;
    routes.push_back({.method = "GET",
                      .path = std::string(kStream),
                      .errors = ErrorStyle::openai,
                      .converse = [](Services&, WebSocket&) -> Task<> { co_return; }});
    for (Route& one : routes) one.takes_slot = speaking && one.path == "/v1/tts";
    router_ =
        std::make_unique<Router>(services_, std::move(routes), ApiKeys(config_.api_key, config_.api_key_file),
                                 ApiKeys(config_.admin_key, config_.admin_key_file));
  }

  // As the transport does it: judged, then handled unless refused.
  Answered ask(Request request) {
    boost::asio::io_context context(1);
    const Verdict verdict = router_->judge(request, false);
    for (const auto& told : {verdict.refusal, verdict.answer}) {
      if (!told) continue;
      return {.status = told->status,
              .content_type = told->content_type,
              .headers = told->headers,
              .pieces = {told->body}};
    }
    FakeExchange exchange(context.get_executor(), std::move(request));
    boost::asio::co_spawn(context.get_executor(), router_->handle(exchange),
                          [](const std::exception_ptr& thrown) { EXPECT_FALSE(thrown); });
    context.run();
    return std::move(exchange.answered);
  }

  ServerConfig config_;
  std::atomic<bool> draining_{false};
  Engine engine_{testing::built_in_config()};
  ServerMetrics metrics_;
  Workers workers_{1};
  Services services_{Models({{"shoal", &engine_}}), config_, workers_, metrics_, draining_, "{}"};
  std::unique_ptr<Router> router_;
};

}  // namespace shoal::server::router_testing
