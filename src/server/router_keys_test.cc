// Who may ask for what: keys, origins, hosts.
#include <fstream>

#include "base/json.h"
#include "base/temporary_folder_testing.h"
#include "server/router_testing.h"

namespace shoal::server {
namespace {

using router_testing::kStream;
using router_testing::RouterTest;
using testing::Answered;
using testing::get_request;
using testing::json_request;

TEST_F(RouterTest, OperatorRoutesAreMarkedEvenWithAWrongKey) {
  make({.api_key = "sesame"});
  Request metrics = get_request("/metrics"), models = get_request("/v1/models");
  EXPECT_TRUE(router_->judge(metrics, false).for_operators);
  EXPECT_FALSE(router_->judge(models, false).for_operators);
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

TEST_F(RouterTest, AKeyThatHasUsedUpItsRequestsIsToldWhatIsLeft) {
  const TemporaryFolder dir;
  std::ofstream(dir.path("keys")) << "ann:one requests_per_minute=2\nbob:two\n";
  make({.api_key_file = dir.path("keys")}, /*speaking=*/true);
  const auto speak = [&](const char* key) {
    Request request = json_request("/v1/tts", "{}");
    request.headers.add("Authorization", concat("Bearer ", key));
    return ask(request);
  };
  EXPECT_EQ(speak("one").header("x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(speak("one").header("x-ratelimit-remaining-requests"), "0");
  const Answered refused = speak("one");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(refused.header("retry-after") + "s", refused.header("x-ratelimit-reset-requests"));
  EXPECT_NE(refused.body().find("2 requests a minute"), std::string::npos) << refused.body();
  const Answered other = speak("two");
  EXPECT_EQ(other.status, 500) << "the route breaks down, and not the limit";
  EXPECT_EQ(other.header("x-ratelimit-limit-requests"), "");
}

TEST_F(RouterTest, LimitsOfAnAdminKeyAreRefused) {
  const TemporaryFolder dir;
  std::ofstream(dir.path("keys")) << "root:one requests_per_minute=2\n";
  EXPECT_THROW(make({.admin_key_file = dir.path("keys")}), Error);
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
