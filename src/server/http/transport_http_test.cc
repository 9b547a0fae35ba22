// Requests and answers over a socket.
#include <gtest/gtest.h>

#include "server/http/raw_client_testing.h"
#include "server/http/toy_application_testing.h"

namespace shoal::server {
namespace {

std::string get(const std::string& target, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: h\r\n" + more + "\r\n";
}
std::string post(const std::string& target, const std::string& body, const std::string& more = "") {
  return "POST " + target + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + more + "\r\n" + body;
}

TEST(TransportHttp, AnswersAndStaysOpen) {
  ToyServer server;
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send(post("/a%20b?x=1+2", "body " + std::to_string(i)));
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "POST /a b\nx -> 1 2\nbody " + std::to_string(i));
    EXPECT_EQ(answer.field("content-type"), "text/plain");
    EXPECT_EQ(answer.field("x-request-id"), "7");
    EXPECT_TRUE(answer.field("date").ends_with(" GMT"));
    EXPECT_FALSE(answer.has("connection"));
  }
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 3; }));
  const auto [request, record] = server.application.records().back();
  EXPECT_EQ(request.id, "id-3");
  EXPECT_EQ(request.peer, "127.0.0.1");
  EXPECT_EQ(record.status, 200);
  EXPECT_TRUE(record.whole);
  EXPECT_EQ(record.bytes_received, 6u);
  EXPECT_EQ(record.bytes_sent, 25u);
  const TransportStatistics statistics = server.transport.statistics();
  EXPECT_EQ(statistics.connections, 1);
  EXPECT_EQ(statistics.accepted, 1u);
}

TEST(TransportHttp, PipelinedRequestsAreAnsweredInOrder) {
  ToyServer server;
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 50; ++i)
    all += i % 3 == 0 ? get("/stream?pieces=2&bytes=9000") : post("/n" + std::to_string(i), "body");
  client.send(all);
  for (int i = 0; i < 50; ++i) {
    const Answer answer = client.read_answer();
    ASSERT_TRUE(answer.whole) << i;
    EXPECT_EQ(answer.body, i % 3 == 0 ? "begin" + std::string(9000, 'a') + std::string(9000, 'b')
                                      : "POST /n" + std::to_string(i) + "\nbody");
  }
}

TEST(TransportHttp, ReadsARequestByteByByte) {
  ToyServer server;
  RawClient client(server.port());
  for (const char c : "\r\n" + post("/slow", "abc", "Connection: close\r\n"))
    client.send(std::string_view(&c, 1));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.body, "POST /slow\nabc");
  EXPECT_EQ(answer.field("connection"), "close");
  EXPECT_TRUE(client.closed());
  EXPECT_FALSE(client.was_reset());
}

TEST(TransportHttp, ChunkedRequestsWithExtensionsAndTrailers) {
  ToyServer server;
  RawClient client(server.port());
  client.send("POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b;c=\"d\"\r\nwiki\r\n");
  client.send("5\r\npedia\r\n0\r\nTrailer: x\r\n\r\n" + get("/next"));
  EXPECT_EQ(client.read_answer().body, "POST /c\nwikipedia");
  EXPECT_EQ(client.read_answer().body, "GET /next\n");
}

TEST(TransportHttp, HeadHasNoBody) {
  ToyServer server;
  RawClient client(server.port());
  const std::string head = "HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n";
  client.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" + head + get("/b"));
  const Answer answer = client.read_answer(true);
  EXPECT_EQ(answer.field("content-length"), "8");
  EXPECT_EQ(client.read_answer(true).field("transfer-encoding"), "chunked");
  EXPECT_EQ(client.read_answer().body, "GET /b\n");
}

TEST(TransportHttp, NoContentHasNoLength) {
  ToyServer server;
  RawClient client(server.port());
  client.send(get("/empty") + get("/b"));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 204);
  EXPECT_FALSE(answer.has("content-length"));
  EXPECT_EQ(client.read_answer().body, "GET /b\n");
}

TEST(TransportHttp, Http10) {
  ToyServer server;
  RawClient client(server.port());
  client.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(client.read_answer().field("connection"), "keep-alive");
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const Answer answer = client.read_answer();
  EXPECT_FALSE(answer.has("transfer-encoding"));
  EXPECT_FALSE(answer.has("content-length"));
  EXPECT_EQ(answer.field("connection"), "close");
  EXPECT_EQ(answer.body, "beginaaaabbbbcccc");
  EXPECT_TRUE(answer.whole);

  RawClient plain(server.port());
  plain.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(plain.read_answer().body, "GET /a\n");
  EXPECT_TRUE(plain.closed());
}

TEST(TransportHttp, ExpectIsAnsweredBeforeTheBody) {
  ToyServer server;
  RawClient client(server.port());
  const std::string head = "POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
  client.send(head);
  EXPECT_EQ(client.read_answer().status, 100);
  client.send("body");
  EXPECT_EQ(client.read_answer().body, "POST /e\nbody");
  client.send(head + "body");  // who does not wait is not told
  EXPECT_EQ(client.read_answer().body, "POST /e\nbody");
  client.send(get("/none", "Expect: 100-continue\r\n"));
  EXPECT_EQ(client.read_answer().body, "GET /none\n");
  client.send(get("/none", "Expect: the unexpected\r\n"));
  EXPECT_EQ(client.read_answer().status, 417);
}

TEST(TransportHttp, RefusalsAreSentBeforeTheBodyArrivesAndClose) {
  ToyServer server;
  RawClient client(server.port());
  client.send("POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n");
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.body, "no key");
  EXPECT_EQ(answer.field("connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST(TransportHttp, SmuggledRequestsAreNeverServed) {
  const std::string inner = get("/smuggled");
  const std::string length = std::to_string(inner.size());
  const std::string chunk = "0\r\n\r\n" + inner;
  for (const std::string& attempt :
       {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + chunk,
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n" + chunk,
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n" + chunk,
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n" + chunk,
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n" + chunk,
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n" + chunk,
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: " + length + "\r\n\r\n" + inner,
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0, " + length + "\r\n\r\n" + inner,
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +0\r\n\r\n" + inner,
        "GET / HTTP/1.1\r\nHost: h\r\nHost: other\r\n\r\n" + inner, "GET / HTTP/1.1\r\n\r\n" + inner}) {
    ToyServer server;
    RawClient client(server.port());
    client.send(attempt);
    const Answer answer = client.read_answer();
    EXPECT_TRUE(answer.status == 400 || answer.status == 501) << attempt;
    EXPECT_EQ(answer.field("x-refused"), "yes");
    EXPECT_TRUE(client.closed()) << attempt;
    for (const auto& [request, record] : server.application.records()) {
      EXPECT_NE(request.path, "/smuggled") << attempt;
      EXPECT_EQ(record.status, answer.status);
    }
  }
}

TEST(TransportHttp, FieldsThatBreakTheHeadAreOurFault) {
  ToyServer server;
  RawClient client(server.port());
  client.send(get("/inject"));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.body, "4");
  EXPECT_FALSE(answer.has("set-cookie"));
}

TEST(TransportHttp, ClientsCanTellThatAnAnswerWasCut) {
  ToyServer server;
  for (const char* version : {"1.0", "1.1"}) {
    RawClient client(server.port());
    client.send(std::string("GET /cut HTTP/") + version + "\r\nHost: h\r\n\r\n");
    const Answer answer = client.read_answer();
    EXPECT_FALSE(answer.whole) << version;
    EXPECT_TRUE(client.closed()) << version;
  }
  RawClient client(server.port());
  client.send(get("/nothing"));
  EXPECT_EQ(client.read_answer().status, 0);
  EXPECT_TRUE(client.closed());
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 3; }));
  for (const auto& [request, record] : server.application.records()) EXPECT_FALSE(record.whole);
}

TEST(TransportHttp, ListensOnIpv6AndOnAFreePort) {
  TransportOptions options;
  options.listen = "[::1]:0";
  ToyServer server(options);
  RawClient client(server.port(), {.v6 = true});
  client.send(get("/a"));
  EXPECT_EQ(client.read_answer().body, "GET /a\n");
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 1; }));
  EXPECT_EQ(server.application.records()[0].first.peer, "::1");
}

ErrorCode code_of(TransportOptions options) {
  ToyApplication application;
  try {
    Transport transport(std::move(options), application);
    transport.start();
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

TEST(TransportHttp, BadOptionsAreNamed) {
  for (const char* bad : {"", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                          "::1:80", "[::1]", "[127.0.0.1]:80", "[x]:80", "a b:80", "127.0.0.1:80x"})
    EXPECT_EQ(code_of({.listen = bad}), ErrorCode::invalid_argument) << bad;
  EXPECT_EQ(code_of({.threads = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({.max_connections = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({.header_timeout = std::chrono::milliseconds(0)}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({.tls_certificate = "a.pem"}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of({.tls_certificate = "/nowhere/a.pem", .tls_key = "/nowhere/b.pem"}),
            ErrorCode::not_found);
}

TEST(TransportHttp, APortInUseIsAnError) {
  ToyServer server;
  for (int threads : {1, 2})
    EXPECT_EQ(code_of({.listen = "127.0.0.1:" + std::to_string(server.port()), .threads = threads}),
              ErrorCode::io);
  TransportOptions elsewhere{.listen = "203.0.113.1:0"};
  EXPECT_EQ(code_of(elsewhere), ErrorCode::io);
}

TEST(TransportHttp, AnAnswerBeforeTheBodyKeepsTheConnection) {
  ToyServer server;
  RawClient client(server.port());
  client.send("OPTIONS /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  const Answer preflight = client.read_answer();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.field("allow"), "GET, OPTIONS");
  EXPECT_EQ(preflight.field("connection"), "");
  client.send("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_EQ(client.read_answer().body, "POST /a\nx");
}

}  // namespace
}  // namespace shoal::server
