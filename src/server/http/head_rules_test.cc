#include "server/http/head_rules.h"

#include <gtest/gtest.h>

namespace shoal::server {
namespace {

Request request_with(Headers headers) {
  Request request;
  request.method = "GET";
  request.headers = std::move(headers);
  return request;
}

int status_of(const std::optional<Refusal>& refusal) { return refusal ? refusal->status : 200; }

TEST(CheckHead, RequiresExactlyOneHost) {
  EXPECT_EQ(status_of(check_head(request_with({{"Host", "a:80"}}), 11)), 200);
  EXPECT_EQ(status_of(check_head(request_with({{"host", "[::1]:80"}}), 11)), 200);
  EXPECT_EQ(status_of(check_head(request_with({{"Host", ""}}), 11)), 200);
  EXPECT_EQ(status_of(check_head(request_with({}), 11)), 400);
  EXPECT_EQ(status_of(check_head(request_with({}), 10)), 200);
  EXPECT_EQ(status_of(check_head(request_with({{"Host", "a"}, {"hOST", "a"}}), 11)), 400);
  for (const char* bad : {"a b", "a/b", "a@b", "a\"", "a\\b", "a#b", "a?b"})
    EXPECT_EQ(status_of(check_head(request_with({{"Host", bad}}), 11)), 400) << bad;
}

TEST(CheckHead, RequiresContentLengthToBeOneNumber) {
  for (const char* good : {"0", "5", "00005", "999999999999999999"})
    EXPECT_EQ(status_of(check_head(request_with({{"Host", "a"}, {"Content-Length", good}}), 11)), 200)
        << good;
  for (const char* bad : {"", "+5", "-5", "5, 5", "5 5", "0x5", "5.0", "1e3", "18446744073709551616"})
    EXPECT_EQ(status_of(check_head(request_with({{"Host", "a"}, {"Content-Length", bad}}), 11)), 400) << bad;
  EXPECT_EQ(status_of(check_head(
                request_with({{"Host", "a"}, {"Content-Length", "5"}, {"content-length", "5"}}), 11)),
            400);
}

TEST(CheckHead, AcceptsOnlyChunkedTransferEncoding) {
  const auto with = [](const char* coding, int version) {
    return status_of(check_head(request_with({{"Host", "a"}, {"Transfer-Encoding", coding}}), version));
  };
  EXPECT_EQ(with("chunked", 11), 200);
  EXPECT_EQ(with("Chunked", 11), 200);
  EXPECT_EQ(with("chunked", 10), 400);
  for (const char* bad :
       {"gzip", "gzip, chunked", "chunked, gzip", "xchunked", "chunked;q=1", "identity", "", "chunked,"})
    EXPECT_EQ(with(bad, 11), 501) << bad;
  EXPECT_EQ(
      status_of(check_head(
          request_with({{"Host", "a"}, {"Transfer-Encoding", "chunked"}, {"Content-Length", "1"}}), 11)),
      400);
  EXPECT_EQ(
      status_of(check_head(
          request_with({{"Host", "a"}, {"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}}),
          11)),
      400);
}

TEST(CheckHead, AcceptsOnlyExpectContinue) {
  EXPECT_EQ(status_of(check_head(request_with({{"Host", "a"}, {"Expect", "100-Continue"}}), 11)), 200);
  EXPECT_EQ(status_of(check_head(request_with({{"Host", "a"}, {"Expect", "miracles"}}), 11)), 417);
}

TEST(DecodeTarget, PathAndQuery) {
  Request request = request_with({});
  ASSERT_FALSE(decode_target("/v1/%74ts%20%C3%A9?a=1&b=x+y%26z&c&=d&&a=2", request));
  EXPECT_EQ(request.path, "/v1/tts \xC3\xA9");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"a", "1"}, {"b", "x y&z"}, {"c", ""}, {"", "d"}, {"a", "2"}};
  EXPECT_EQ(request.query, expected);
  EXPECT_EQ(request.parameter("a"), "1");
  EXPECT_EQ(request.parameter("missing"), std::nullopt);
}

TEST(DecodeTarget, AbsoluteFormAndAsterisk) {
  const auto path_of = [](const char* target, const char* method = "GET") {
    Request request;
    request.method = method;
    const auto refusal = decode_target(target, request);
    return refusal ? std::to_string(refusal->status) : request.path;
  };
  EXPECT_EQ(path_of("http://host:80/a/b?c"), "/a/b");
  EXPECT_EQ(path_of("HTTPS://host"), "/");
  EXPECT_EQ(path_of("http://host?x=1"), "/");
  EXPECT_EQ(path_of("*", "OPTIONS"), "*");
  EXPECT_EQ(path_of("*"), "400");
  EXPECT_EQ(path_of("host:80", "CONNECT"), "501");
  EXPECT_EQ(path_of("//a+b"), "//a+b");
  for (const char* bad :
       {"", "a", "ftp://host/a", "/a#b", "/%", "/%4", "/%zz", "/%00", "/a?%00", "/a?b=%", "/a?%zz=1"})
    EXPECT_EQ(path_of(bad), "400") << bad;
}

TEST(HasToken, SearchesEveryFieldOfTheName) {
  const Headers headers = {{"Connection", "keep-alive, X"}, {"connection", " Upgrade "}};
  EXPECT_TRUE(has_token(headers, "connection", "upgrade"));
  EXPECT_TRUE(has_token(headers, "Connection", "x"));
  EXPECT_FALSE(has_token(headers, "connection", "up"));
  EXPECT_FALSE(has_token(headers, "connection", "keep"));
}

TEST(Message, MediaType) {
  EXPECT_EQ(request_with({{"Content-Type", "Application/JSON ; charset=utf-8"}}).content_type(),
            "application/json");
  EXPECT_EQ(request_with({}).content_type(), "");
  EXPECT_EQ(phrase_of(404), "Not Found");
  EXPECT_EQ(phrase_of(299), "Unknown");
}

TEST(CheckWebSocket, RequiresKeyAndVersionAndNoBody) {
  const auto with = [](const char* version, const char* key, Headers::Field more) {
    return status_of(check_websocket(
        request_with({{"Sec-WebSocket-Version", version}, {"Sec-WebSocket-Key", key}, std::move(more)})));
  };
  const char* key = "dGhlIHNhbXBsZSBub25jZQ==";
  EXPECT_EQ(with("13", key, {"x", ""}), 200);
  EXPECT_EQ(with("12", key, {"x", ""}), 426);
  EXPECT_EQ(with("13", "short", {"x", ""}), 400);
  EXPECT_EQ(with("13", key, {"Sec-WebSocket-Key", key}), 400);
  EXPECT_EQ(with("13", key, {"Content-Length", "1"}), 400);
  EXPECT_EQ(with("13", key, {"Content-Length", "0"}), 200);
  EXPECT_EQ(with("13", key, {"Transfer-Encoding", "chunked"}), 400);
}

}  // namespace
}  // namespace shoal::server
