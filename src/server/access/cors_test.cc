#include "server/access/cors.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

Request request_from(std::string method, std::string origin, std::string host = "speech.example:8080") {
  Request request{.method = std::move(method), .path = "/v1/tts", .headers = {{"Host", std::move(host)}}};
  if (!origin.empty()) request.headers.add("Origin", std::move(origin));
  return request;
}

bool may_act(const CrossOrigin& rules, const Request& request, bool upgrade) {
  return rules.objection(request, upgrade).empty();
}

std::string value(const Headers& headers, std::string_view name) {
  const std::string* found = headers.find(name);
  return found ? *found : "";
}

TEST(CrossOrigin, WithoutConfiguredOriginsOtherPagesGetNoHeadersAndMayNotAct) {
  const CrossOrigin none("");
  EXPECT_TRUE(may_act(none, request_from("POST", ""), false)) << "programs send no origin";
  EXPECT_TRUE(may_act(none, request_from("POST", "http://speech.example:8080"), false)) << "our own page";
  EXPECT_FALSE(may_act(none, request_from("POST", "http://evil.example"), false));
  EXPECT_FALSE(may_act(none, request_from("POST", "null"), false)) << "a sandboxed page";
  EXPECT_TRUE(may_act(none, request_from("GET", "http://evil.example"), false))
      << "its browser hides the answer";
  EXPECT_FALSE(may_act(none, request_from("GET", "http://evil.example"), true))
      << "a WebSocket is not hidden";
  const Headers headers = none.answer_headers(request_from("GET", "http://evil.example"));
  EXPECT_EQ(headers.begin(), headers.end());
}

TEST(CrossOrigin, OnlyConfiguredOriginsAreAllowed) {
  const CrossOrigin some(" https://a.example/ ,https://b.example");
  EXPECT_TRUE(may_act(some, request_from("POST", "https://a.example"), false));
  EXPECT_TRUE(may_act(some, request_from("GET", "https://b.example"), true));
  EXPECT_FALSE(may_act(some, request_from("POST", "http://a.example"), false))
      << "another scheme, another origin";
  EXPECT_FALSE(may_act(some, request_from("POST", "https://a.example.evil"), false));
  const Headers allowed = some.answer_headers(request_from("POST", "https://a.example"));
  EXPECT_EQ(value(allowed, "access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(value(allowed, "vary"), "origin");
  const Headers foreign = some.answer_headers(request_from("POST", "https://c.example"));
  EXPECT_EQ(value(foreign, "access-control-allow-origin"), "");
  EXPECT_EQ(value(foreign, "vary"), "origin") << "a cache must not give this answer to an allowed page";
}

TEST(CrossOrigin, AStarAllowsEveryOrigin) {
  const CrossOrigin any("*");
  EXPECT_TRUE(may_act(any, request_from("POST", "https://whoever.example"), false));
  EXPECT_EQ(value(any.answer_headers(request_from("POST", "https://whoever.example")),
                  "access-control-allow-origin"),
            "*");
  const Headers preflight = any.preflight_headers(request_from("OPTIONS", "https://whoever.example"), "POST");
  EXPECT_EQ(value(preflight, "access-control-allow-methods"), "POST");
  EXPECT_NE(value(preflight, "access-control-allow-headers").find("authorization"), std::string::npos);
}

// A page of evil.example whose name was pointed at 127.0.0.1 is of the server's own origin to its browser.
TEST(CrossOrigin, ALoopbackServerAcceptsOnlyLoopbackHosts) {
  const CrossOrigin rules("", true);
  const auto of_page = [](std::string method, const std::string& host) {
    return request_from(std::move(method), "http://" + host, host);
  };
  for (const char* method : {"POST", "DELETE"}) {
    const std::string_view objection = rules.objection(of_page(method, "evil.example:8080"), false);
    EXPECT_NE(objection.find("--cors-origins"), std::string::npos) << objection;
    EXPECT_NE(objection.find("API key"), std::string::npos) << objection;
  }
  EXPECT_FALSE(may_act(rules, of_page("GET", "evil.example:8080"), true)) << "a WebSocket";
  EXPECT_FALSE(may_act(rules, of_page("POST", "127.0.0.1.evil.example"), false));
  for (const char* host :
       {"localhost:8080", "LOCALHOST", "shoal.localhost:8080", "127.0.0.1:8080", "127.8.8.8", "[::1]:8080"}) {
    EXPECT_TRUE(may_act(rules, of_page("POST", host), false)) << host;
    EXPECT_TRUE(may_act(rules, of_page("GET", host), true)) << host;
  }
  EXPECT_FALSE(may_act(rules, request_from("POST", "http://localhost:1", "localhost:2"), false))
      << "another server's page on this machine";
  EXPECT_TRUE(may_act(rules, request_from("POST", "", "myname:8080"), false)) << "a program, by any name";
  EXPECT_TRUE(may_act(rules, request_from("GET", "", "myname:8080"), true));
}

TEST(CrossOrigin, HostsOfAllowedOriginsAreAccepted) {
  const CrossOrigin rules("https://speech.example", true);
  EXPECT_TRUE(may_act(rules, request_from("POST", "https://speech.example", "127.0.0.1:8080"), false))
      << "behind a proxy";
  EXPECT_TRUE(
      may_act(rules, request_from("POST", "http://speech.example:8080", "speech.example:8080"), false));
  EXPECT_FALSE(may_act(rules, request_from("POST", "http://evil.example", "evil.example"), false));
  EXPECT_TRUE(may_act(CrossOrigin("*", true), request_from("POST", "http://a.example", "a.example"), false));
}

TEST(CrossOrigin, RequestedHeadersAreAllowed) {
  const CrossOrigin some("https://a.example");
  const auto allowed = [&](const char* origin, const char* asked) {
    Request preflight = request_from("OPTIONS", origin);
    preflight.headers.add("Access-Control-Request-Headers", asked);
    return value(some.preflight_headers(preflight, "POST"), "access-control-allow-headers");
  };
  // What the official client sends from a browser.
  EXPECT_EQ(allowed("https://a.example", "authorization,content-type,x-stainless-arch, X-Stainless-OS"),
            "authorization, content-type, x-stainless-arch, X-Stainless-OS");
  EXPECT_EQ(allowed("https://a.example", "x a,x\r\nset-cookie: y,,\"x\",x:y,text/html,x-b"), "x-b")
      << "no names of fields";
  EXPECT_EQ(allowed("https://b.example", "x-stainless-arch"), "");
}

}  // namespace
}  // namespace shoal::server
