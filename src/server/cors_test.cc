#include "server/cors.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

Request request_from(std::string method, std::string origin) {
  Request request{
      .method = std::move(method), .path = "/v1/tts", .headers = {{"Host", "speech.example:8080"}}};
  if (!origin.empty()) request.headers.add("Origin", std::move(origin));
  return request;
}

std::string value(const Headers& headers, std::string_view name) {
  const std::string* found = headers.find(name);
  return found ? *found : "";
}

TEST(CrossOrigin, WithoutOriginsNobodyIsAnsweredAndOtherPagesMayNotAct) {
  const CrossOrigin none("");
  EXPECT_TRUE(none.may_act(request_from("POST", ""), false)) << "programs send no origin";
  EXPECT_TRUE(none.may_act(request_from("POST", "http://speech.example:8080"), false)) << "our own page";
  EXPECT_FALSE(none.may_act(request_from("POST", "http://evil.example"), false));
  EXPECT_FALSE(none.may_act(request_from("POST", "null"), false)) << "a sandboxed page";
  EXPECT_TRUE(none.may_act(request_from("GET", "http://evil.example"), false))
      << "its browser hides the answer";
  EXPECT_FALSE(none.may_act(request_from("GET", "http://evil.example"), true)) << "a WebSocket is not hidden";
  const Headers headers = none.answer_headers(request_from("GET", "http://evil.example"));
  EXPECT_EQ(headers.begin(), headers.end());
}

TEST(CrossOrigin, NamedOriginsAndNoOthers) {
  const CrossOrigin some(" https://a.example/ ,https://b.example");
  EXPECT_TRUE(some.may_act(request_from("POST", "https://a.example"), false));
  EXPECT_TRUE(some.may_act(request_from("GET", "https://b.example"), true));
  EXPECT_FALSE(some.may_act(request_from("POST", "http://a.example"), false))
      << "another scheme, another origin";
  EXPECT_FALSE(some.may_act(request_from("POST", "https://a.example.evil"), false));
  const Headers allowed = some.answer_headers(request_from("POST", "https://a.example"));
  EXPECT_EQ(value(allowed, "access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(value(allowed, "vary"), "origin");
  const Headers foreign = some.answer_headers(request_from("POST", "https://c.example"));
  EXPECT_EQ(value(foreign, "access-control-allow-origin"), "");
  EXPECT_EQ(value(foreign, "vary"), "origin") << "a cache must not give this answer to an allowed page";
}

TEST(CrossOrigin, Everybody) {
  const CrossOrigin any("*");
  EXPECT_TRUE(any.may_act(request_from("POST", "https://whoever.example"), false));
  EXPECT_EQ(value(any.answer_headers(request_from("POST", "https://whoever.example")),
                  "access-control-allow-origin"),
            "*");
  const Headers preflight = any.preflight_headers(request_from("OPTIONS", "https://whoever.example"), "POST");
  EXPECT_EQ(value(preflight, "access-control-allow-methods"), "POST");
  EXPECT_NE(value(preflight, "access-control-allow-headers").find("authorization"), std::string::npos);
}

TEST(CrossOrigin, FieldsThatAPageAsksForAreAllowed) {
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
