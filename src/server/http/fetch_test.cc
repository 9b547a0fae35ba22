#include "server/http/fetch.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include "server/http/raw_client_testing.h"
#include "server/http/self_signed_testing.h"
#include "server/http/toy_application_testing.h"

namespace shoal::server {
namespace {

std::optional<Response> fetched(Peer peer, const std::string& target, Headers headers = {},
                                std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  return fetch_and_wait(std::move(peer), target, std::move(headers), patience);
}

TEST(Fetch, GivesTheWholeAnswer) {
  ToyServer server;
  const auto answer = fetched({.port = server.port()}, "/a?x=1", {{"Authorization", "Bearer key"}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "text/plain");
  EXPECT_EQ(answer->body, "GET /a\nx -> 1\n");
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 1; }));
  const Request request = server.application.records().front().first;
  ASSERT_TRUE(request.headers.find("authorization"));
  EXPECT_EQ(*request.headers.find("authorization"), "Bearer key");
  const auto pieces = fetched({.port = server.port()}, "/stream?pieces=3&bytes=9000");
  ASSERT_TRUE(pieces);
  EXPECT_EQ(pieces->body.size(), 5u + 3 * 9000);
  EXPECT_EQ(fetched({.port = server.port()}, "/refused")->status, 401);
}

TEST(Fetch, GivesNothingWithoutAnAnswer) {
  uint16_t port = 0;
  {
    ToyServer server;
    port = server.port();
    EXPECT_FALSE(fetched({.port = port}, "/wait", {}, std::chrono::milliseconds(100)));
    EXPECT_FALSE(fetched({.port = port}, "/stream?pieces=1&bytes=5000000")) << "too large";
  }
  EXPECT_FALSE(fetched({.port = port}, "/")) << "nobody listens";
  EXPECT_FALSE(fetched({.host = "nowhere", .port = port}, "/"));
}

TEST(Fetch, SpeaksTls) {
  const SelfSigned identity;
  ToyServer secure(identity.options()), plain;
  const auto answer = fetched({.port = secure.port(), .tls = true}, "/a?x=1");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "GET /a\nx -> 1\n");
  EXPECT_FALSE(fetched({.port = secure.port()}, "/a")) << "without TLS";
  EXPECT_FALSE(fetched({.port = plain.port(), .tls = true}, "/a")) << "from a server without TLS";
}

TEST(Fetch, AsksAllAtOnceAndWaitsForTheSlowest) {
  ToyServer server;
  uint16_t nobody = 0;
  {
    ToyServer other;
    nobody = other.port();
  }
  const auto all = [&](const std::string& target, size_t count, int patience_ms) {
    boost::asio::io_context context;
    std::vector<Peer> peers(count, {.port = server.port()});
    if (count > 1) peers[1].port = nobody;
    auto answers = boost::asio::co_spawn(
        context, fetch_all(context.get_executor(), peers, target, {}, std::chrono::milliseconds(patience_ms)),
        boost::asio::use_future);
    context.run();
    return answers.get();
  };
  EXPECT_TRUE(all("/a", 0, 60'000).empty());
  const auto three = all("/a", 3, 60'000);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_TRUE(three[0] && !three[1] && three[2]);
  EXPECT_EQ(three[2]->body, "GET /a\n");
  const auto began = std::chrono::steady_clock::now();
  for (const auto& answer : all("/wait", 40, 400)) EXPECT_FALSE(answer);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8)) << "one after the other: 16 s";
}

}  // namespace
}  // namespace shoal::server
