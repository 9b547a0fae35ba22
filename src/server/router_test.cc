#include "server/router.h"

#include "base/json.h"
#include "server/router_testing.h"

namespace shoal::server {
namespace {

using router_testing::route;
using router_testing::RouterTest;
using router_testing::say_path;
using testing::Answered;
using testing::FakeExchange;
using testing::get_request;
using testing::json_request;

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

TEST_F(RouterTest, WhileDrainingOnlyMonitoringRoutesAnswer) {
  make();
  draining_ = true;
  EXPECT_EQ(ask(get_request("/health")).status, 200);
  EXPECT_EQ(ask(get_request("/metrics")).status, 200);
  const Answered refused = ask(get_request("/v1/models"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_FALSE(refused.header("retry-after").empty());
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

}  // namespace
}  // namespace shoal::server
