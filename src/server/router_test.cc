#include "server/router.h"

#include <boost/asio/detached.hpp>
#include <fstream>
#include <gtest/gtest.h>

#include "base/json.h"
#include "server/routes/routes_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::FakeExchange;
using testing::get_request;
using testing::json_request;

constexpr std::string_view kStream = "/v1/audio/stream";

Route route(std::string method, std::string path, ErrorStyle errors, Access access,
            std::function<Task<>(Services&, Exchange&)> handle) {
  return {.method = std::move(method),
          .path = std::move(path),
          .errors = errors,
          .access = access,
          .handle = std::move(handle)};
}

Task<> say_path(Services&, Exchange& exchange) {
  Response answer{.content_type = "text/plain", .body = exchange.request().path};
  co_await exchange.respond(std::move(answer));
}

Task<> break_down(Services&, Exchange&) {
  throw std::runtime_error("secret of the inside");
  co_return;
}

Task<> run_out(Services&, Exchange&) {
  fail(ErrorCode::resource_exhausted, "queue: full");
  co_return;
}

Task<> break_in_the_middle(Services&, Exchange& exchange) {
  Response head{.body = "half"};
  co_await exchange.begin(std::move(head));
  fail(ErrorCode::internal, "the other half is lost");
}

Task<> complain(Services&, Exchange&) {
  throw BodyError(ErrorCode::invalid_argument, "items[2].voice", "expected a text, got 3");
  co_return;
}

// A router around an engine that was never started.
class RouterTest : public ::testing::Test {
 protected:
  void make(ServerConfig config = {}) {
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

std::string text_at(const Answered& answer, std::initializer_list<std::string_view> path) {
  Json json = Json::parse(answer.body(), "answer");
  const Json* value = &json;
  for (const std::string_view key : path) value = &value->at(key);
  return value->is_string() ? value->as_string() : std::to_string(value->as_integer());
}

TEST_F(RouterTest, ExactPathsComeBeforePatterns) {
  make();
  EXPECT_EQ(ask(get_request("/v1/models")).body(), "/v1/models");
  EXPECT_EQ(ask(get_request("/v1/models/tts-1")).body(), "/v1/models/tts-1");
  EXPECT_EQ(ask(get_request("/v1/models/exact")).status, 429) << "the exact path has its own handler";
  EXPECT_EQ(ask(get_request("/v1/models/a/b")).body(), "/v1/models/a/b") << "a name with a slash";
  EXPECT_EQ(ask(get_request("/nowhere")).status, 404);
}

TEST_F(RouterTest, RedundantSlashesDoNotMatter) {
  make({.admin_key = "root"});
  for (const char* path : {"/v1/models/", "//v1/models", "/v1//models", "///v1///models///"})
    EXPECT_EQ(ask(get_request(path)).body(), "/v1/models") << path;
  EXPECT_EQ(ask(get_request("//v1/models/tts-1/")).body(), "/v1/models/tts-1");
  EXPECT_EQ(ask(json_request("//v1/audio/speech", "{}")).status, 400) << "its handler complains";
  // A proxy may guard these by their path.
  Request admin = json_request("//v1/admin/reload", "{}");
  admin.headers.add("Authorization", "Bearer root");
  EXPECT_EQ(ask(admin).status, 404);
}

TEST_F(RouterTest, OperatorRoutesAreMarkedEvenWithAWrongKey) {
  make({.api_key = "sesame"});
  Request metrics = get_request("/metrics"), models = get_request("/v1/models");
  EXPECT_TRUE(router_->judge(metrics, false).for_operators);
  EXPECT_FALSE(router_->judge(models, false).for_operators);
}

TEST_F(RouterTest, UnsupportedPathsOfOtherServersNameTheReplacement) {
  make();
  for (const Request& request : {json_request("/dev/ssml", "{}"), get_request("/dev/ssml"),
                                 get_request("/v1/download/speech.mp3"), get_request("/web/")}) {
    const Answered refused = ask(request);
    EXPECT_EQ(refused.status, 404) << request.path;
    EXPECT_EQ(text_at(refused, {"detail", "error"}), "not_found");
    EXPECT_NE(text_at(refused, {"detail", "message"}), "") << request.path;
  }
  EXPECT_NE(ask(get_request("/web/")).body().find("the web page is at /"), std::string::npos);
}

TEST_F(RouterTest, HeadIsServedAsGetAndAllowedMethodsAreListed) {
  make();
  Request head = get_request("/health");
  head.method = "HEAD";
  EXPECT_EQ(ask(head).status, 200);
  const Answered refused = ask(json_request("/v1/models", "{}"));
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.header("allow"), "GET, HEAD, OPTIONS");
  Request options = get_request("/v1/tts");
  options.method = "OPTIONS";
  EXPECT_FALSE(router_->judge(options, false).refusal) << "a preflight keeps its connection";
  const Answered told = ask(options);
  EXPECT_EQ(told.status, 204);
  EXPECT_EQ(told.header("allow"), "POST, OPTIONS");
  EXPECT_EQ(told.header("access-control-allow-origin"), "");
}

TEST_F(RouterTest, ErrorsHaveTheFormOfTheirApiAndNameTheField) {
  make();
  const Answered openai = ask(json_request("/v1/audio/speech", "{}"));
  EXPECT_EQ(openai.status, 400);
  EXPECT_EQ(text_at(openai, {"error", "param"}), "items[2].voice");
  const Answered fish = ask(json_request("/v1/tts", "{}"));
  EXPECT_EQ(text_at(fish, {"statusCode"}), "500");
  const Answered plain = ask(get_request("/nowhere"));
  EXPECT_EQ(text_at(plain, {"error", "code"}), "not_found");
  EXPECT_EQ(text_at(ask(json_request("/v1/nowhere", "")), {"statusCode"}), "404");
}

TEST_F(RouterTest, InternalErrorsRevealNothing) {
  make();
  const Answered broken = ask(json_request("/v1/tts", "{}"));
  EXPECT_EQ(broken.status, 500);
  EXPECT_EQ(broken.body().find("secret"), std::string::npos) << broken.body();
}

TEST_F(RouterTest, AFullQueueSaysWhenToTryAgain) {
  make();
  const Answered full = ask(get_request("/v1/models/exact"));
  EXPECT_EQ(full.status, 429);
  EXPECT_FALSE(full.header("retry-after").empty());
}

// Without its own limit, the server accepts what its models queue and speak; further requests are refused at
// once.
TEST_F(RouterTest, RequestsBeyondTheCapacityOfTheModelsAreRefused) {
  boost::asio::io_context context(1);
  boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                    boost::asio::wait_traits<std::chrono::steady_clock>, Executor>
      gate(context.get_executor(), std::chrono::hours(1));
  Route waits =
      route("POST", "/v1/tts", ErrorStyle::fish, Access::client,
            [&gate](Services& services, Exchange& exchange) -> Task<> {
              co_await gate.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>()));
              co_await say_path(services, exchange);
            });
  waits.takes_slot = true;
  Router router(services_, {waits}, ApiKeys("", ""), ApiKeys("", ""));
  const int64_t most = engine_.config().max_queue + 2 * engine_.config().streams();
  std::vector<std::unique_ptr<FakeExchange>> exchanges;
  for (int64_t i = 0; i <= most; ++i) {
    Request request = json_request("/v1/tts", "{}");
    ASSERT_FALSE(router.judge(request, false).refusal);
    exchanges.push_back(std::make_unique<FakeExchange>(context.get_executor(), std::move(request)));
    boost::asio::co_spawn(context.get_executor(), router.handle(*exchanges.back()), boost::asio::detached);
  }
  context.poll();
  EXPECT_EQ(exchanges.back()->answered.status, 429);
  EXPECT_FALSE(exchanges.back()->answered.header("retry-after").empty());
  EXPECT_EQ(exchanges.front()->answered.status, 0);
  gate.cancel();
  context.run();
  for (int64_t i = 0; i < most; ++i) ASSERT_EQ(exchanges[static_cast<size_t>(i)]->answered.status, 200) << i;
}

TEST_F(RouterTest, TransportRefusalsHaveAnIdAndSayWhenToTryAgain) {
  make();
  Request head;
  const Response full = router_->refuse(head, 503, "too many connections are open at the moment");
  EXPECT_FALSE(head.id.empty());
  ASSERT_NE(full.headers.find("x-request-id"), nullptr);
  EXPECT_EQ(*full.headers.find("x-request-id"), head.id);
  EXPECT_NE(full.headers.find("retry-after"), nullptr);
  EXPECT_NE(full.body.find(head.id), std::string::npos) << full.body;
  Request packed;
  const Response other_coding = router_->refuse(packed, 415, "Content-Encoding: expected gzip");
  EXPECT_NE(other_coding.headers.find("accept-encoding"), nullptr);
  Request other;
  EXPECT_EQ(router_->refuse(other, 400, "malformed").headers.find("retry-after"), nullptr);
  EXPECT_NE(other.id, head.id);
}

TEST_F(RouterTest, ABrokenAnswerIsNeverEndedAsIfComplete) {
  make();
  const Answered half = ask(json_request("/v1/half", "{}"));
  EXPECT_EQ(half.status, 200);
  EXPECT_FALSE(half.whole);
  EXPECT_EQ(half.body(), "half");
}

TEST_F(RouterTest, EveryAnswerCarriesTheIdOfItsRequest) {
  make();
  Request named = get_request("/health");
  named.headers.add("X-Request-Id", "order-17");
  EXPECT_EQ(ask(named).header("x-request-id"), "order-17");
  Request hostile = get_request("/nowhere");
  hostile.headers.add("X-Request-Id", "two\r\nlines");
  const Answered refused = ask(hostile);
  EXPECT_TRUE(refused.header("x-request-id").starts_with("req-")) << refused.header("x-request-id");
  EXPECT_NE(refused.body().find(refused.header("x-request-id")), std::string::npos)
      << "the error names it too";
  EXPECT_NE(ask(get_request("/health")).header("x-request-id"),
            ask(get_request("/health")).header("x-request-id"));
}

TEST_F(RouterTest, KeysUnlockProtectedRoutes) {
  ServerConfig config;
  config.api_key = "sesame";
  make(config);
  EXPECT_EQ(ask(get_request("/health")).status, 200);
  const Answered without = ask(get_request("/v1/models"));
  EXPECT_EQ(without.status, 401);
  EXPECT_EQ(without.header("www-authenticate"), "Bearer");
  for (const char* wrong :
       {"Bearer sesam", "Bearer sesame2", "Basic sesame", "sesame", "Bearer", "Bearer "}) {
    Request request = get_request("/v1/models");
    request.headers.add("Authorization", wrong);
    const Answered refused = ask(request);
    EXPECT_EQ(refused.status, 401) << wrong;
    EXPECT_EQ(refused.body().find("sesame"), std::string::npos);
  }
  Request right = get_request("/v1/models");
  right.headers.add("Authorization", "Bearer sesame");
  EXPECT_EQ(ask(right).status, 200);
}

// A browser's page can set no other header of a WebSocket.
TEST_F(RouterTest, AWebSocketMaySendItsKeyAsASubprotocol) {
  ServerConfig config;
  config.api_key = "sesame";
  make(config);
  const auto judge = [&](std::string_view path, const char* protocols, Headers more = {}) {
    Request request = get_request(std::string(path));
    request.headers = std::move(more);
    request.headers.add("Sec-WebSocket-Protocol", protocols);
    const Verdict verdict = router_->judge(request, path == kStream);
    EXPECT_EQ(verdict.refusal.value_or(Response{}).body.find("sesame"), std::string::npos);
    return verdict.refusal ? std::to_string(verdict.refusal->status)
                           : concat(request.client, ' ', verdict.websocket, ' ', verdict.subprotocol);
  };
  EXPECT_EQ(judge(kStream, "shoal, shoal-api-key.sesame"), "key-1 1 shoal");
  EXPECT_EQ(judge(kStream, "shoal-api-key.sesame"), "key-1 1 ") << "the key is never sent back";
  EXPECT_EQ(judge(kStream, "shoal", {{"Authorization", "Bearer sesame"}}), "key-1 1 shoal");
  for (const char* bad : {"shoal", "shoal-api-key.", "shoal-api-key.sesam", "shoal-api-key.sesame2"})
    EXPECT_EQ(judge(kStream, bad), "401") << bad;
  EXPECT_EQ(judge(kStream, "shoal-api-key.sesame", {{"Authorization", "Bearer wrong"}}), "401");
  EXPECT_EQ(judge("/v1/models", "shoal-api-key.sesame"), "401") << "other routes have a header for it";
  const Headers strange = {{"Host", "speech.example"}, {"Origin", "http://evil.example"}};
  EXPECT_EQ(judge(kStream, "shoal, shoal-api-key.sesame", strange), "403");
}

TEST_F(RouterTest, AdminRoutesDoNotExistWithoutTheirKey) {
  ServerConfig config;
  config.api_key = "sesame";
  make(config);
  Request request = json_request("/v1/admin/reload", "{}");
  request.headers.add("Authorization", "Bearer sesame");
  EXPECT_EQ(ask(request).status, 404);
  config.admin_key = "root";
  make(config);
  EXPECT_EQ(ask(request).status, 401) << "a client's key is no admin's";
  Request admin = json_request("/v1/admin/reload", "{}");
  admin.headers.add("Authorization", "Bearer root");
  EXPECT_EQ(ask(admin).status, 200);
}

TEST_F(RouterTest, WhileDrainingOnlyMonitoringRoutesAnswer) {
  make();
  draining_ = true;
  EXPECT_EQ(ask(get_request("/health")).status, 200);
  EXPECT_EQ(ask(get_request("/metrics")).status, 200);
  const Answered refused = ask(get_request("/v1/models"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_FALSE(refused.header("retry-after").empty());
}

TEST_F(RouterTest, DrainingDoesNotBypassKeys) {
  ServerConfig config;
  config.api_key = "sesame";
  make(config);
  draining_ = true;
  EXPECT_EQ(ask(get_request("/metrics")).status, 401);
  Request with_key = get_request("/metrics");
  with_key.headers.add("Authorization", "Bearer sesame");
  EXPECT_EQ(ask(with_key).status, 200);
}

TEST_F(RouterTest, BodiesAreBoundedByTheirRoute) {
  ServerConfig config;
  config.admin_key = "root";
  config.max_body_mb = 3;
  make(config);
  Request small = json_request("/v1/tts", "");
  EXPECT_EQ(router_->judge(small, false).max_body_bytes, 1 << 20);
  Request large = json_request("/v1/admin/reload", "");
  large.headers.add("Authorization", "Bearer root");
  EXPECT_EQ(router_->judge(large, false).max_body_bytes, 3 << 20);
}

TEST_F(RouterTest, UpgradesAreAcceptedOnlyOnWebSocketRoutes) {
  make();
  Request request = get_request("/v1/models");
  EXPECT_EQ(router_->judge(request, true).refusal.value().status, 400);
}

TEST_F(RouterTest, PagesOfOtherOriginsMayNotPost) {
  make();
  Request request = json_request("/v1/tts", "{}");
  request.headers.add("Host", "127.0.0.1:8080");
  request.headers.add("Origin", "http://evil.example");
  EXPECT_EQ(ask(request).status, 403);
}

// As a page has it whose name was pointed at this machine after it was loaded.
TEST_F(RouterTest, OnlyAnOpenLoopbackServerChecksTheHost) {
  const auto status_with = [&](const char* listen, const char* key) {
    ServerConfig config;
    config.listen = listen;
    config.api_key = key;
    make(config);
    Request request = json_request("/v1/tts", "{}");
    request.headers.add("Host", "evil.example:8080");
    request.headers.add("Origin", "http://evil.example:8080");
    request.headers.add("Authorization", "Bearer sesame");
    return ask(request).status;
  };
  for (const char* loopback : {"127.0.0.1:8080", "localhost:0", "[::1]:8080"}) {
    EXPECT_EQ(status_with(loopback, ""), 403) << loopback;
    EXPECT_EQ(status_with(loopback, "sesame"), 500) << "its handler breaks down";
  }
  EXPECT_EQ(status_with("0.0.0.0:8080", ""), 500);
}

}  // namespace
}  // namespace shoal::server
