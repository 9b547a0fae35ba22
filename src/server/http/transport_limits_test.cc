// Limits, deadlines and the end.
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <list>

#include "server/http/raw_client_testing.h"
#include "server/http/toy_application_testing.h"

namespace shoal::server {
namespace {

using std::chrono::milliseconds;

const std::string kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

TransportOptions with_short_timeouts() {
  TransportOptions options;
  options.threads = 2;
  options.header_timeout = options.body_timeout = options.idle_timeout = options.write_timeout =
      milliseconds(300);
  return options;
}

void expect_still_serving(const ToyServer& server) {
  RawClient client(server.port());
  client.send(kGet);
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(TransportLimits, ASlowHeadTimesOut) {
  ToyServer server(with_short_timeouts());
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n");
  // Fields that never end: were each of them progress, this would go on.
  std::thread dripping([&] {
    for (int i = 0; i < 100 && client.send("X: y\r\n"); ++i) std::this_thread::sleep_for(milliseconds(50));
  });
  EXPECT_EQ(client.read_answer().status, 408);
  dripping.join();
  expect_still_serving(server);
}

TEST(TransportLimits, ASlowBodyTimesOut) {
  ToyServer server(with_short_timeouts());
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
  std::thread dripping([&] {
    for (int i = 0; i < 100 && client.send("x"); ++i) std::this_thread::sleep_for(milliseconds(50));
  });
  EXPECT_EQ(client.read_answer().status, 408);
  dripping.join();
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().body_bytes == 0; }));
}

// The answer to an upload that takes four times as long as it may pause.
Answer answer_to_steady_upload(milliseconds body_timeout) {
  TransportOptions options = with_short_timeouts();
  options.body_timeout = options.header_timeout = body_timeout;
  ToyServer server(options);
  RawClient client(server.port());
  client.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 20000\r\n\r\n");
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(body_timeout * 2 / 5);
    client.send(std::string(2000, 'x'));
  }
  return client.read_answer();
}

TEST(TransportLimits, ASteadyUploadMayTakeLong) {
  Answer answer;
  // A busy machine may itself pause for longer than the first times.
  for (int timeout_ms = 300; timeout_ms <= 9600 && answer.body.size() != 20008u; timeout_ms *= 2)
    answer = answer_to_steady_upload(milliseconds(timeout_ms));
  EXPECT_EQ(answer.body.size(), 20008u) << answer.status;
}

TEST(TransportLimits, ABodyThatTricklesForeverTimesOut) {
  TransportOptions options = with_short_timeouts();
  options.min_body_rate = 100'000;
  ToyServer server(options);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
  // Each piece is progress enough for body_timeout, all together are too slow.
  std::atomic<bool> told{false};
  std::atomic<int> pieces{0};
  std::thread trickling([&] {
    const std::string piece(2048, 'x');
    for (; pieces < 100 && !told && client.send(piece); ++pieces)
      std::this_thread::sleep_for(milliseconds(100));
  });
  EXPECT_EQ(client.read_answer().status, 408);
  told = true;
  trickling.join();
  EXPECT_LT(pieces, 100) << "it went on until the client was tired of it";
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().body_bytes == 0; }));
}

TEST(TransportLimits, IdleConnectionsAreClosed) {
  ToyServer server(with_short_timeouts());
  RawClient silent(server.port()), idle(server.port());
  idle.send(kGet);
  EXPECT_EQ(idle.read_answer().status, 200);
  EXPECT_TRUE(silent.closed());
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(eventually([&] {
    return server.transport.statistics().connections == 2 || server.transport.statistics().connections == 0;
  }));
  silent.close();
  idle.close();
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
}

TEST(TransportLimits, LongHeadsAreAnsweredWithAnError) {
  ToyServer server;
  RawClient client(server.port());
  // Much more than is read: an abrupt close would destroy the answer on its way.
  client.send("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(1 << 20, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 431);
  EXPECT_TRUE(client.closed());
  EXPECT_FALSE(client.was_reset());
}

TEST(TransportLimits, LargeBodiesAreAnsweredWithAnError) {
  ToyServer server;
  for (const char* framing :
       {"Content-Length: 4000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3d0900\r\n"}) {
    RawClient client(server.port());
    client.send(std::string("POST / HTTP/1.1\r\nHost: h\r\n") + framing);
    client.send(std::string(4'000'000, 'x'));
    EXPECT_EQ(client.read_answer().status, 413) << framing;
    EXPECT_TRUE(client.closed());
    EXPECT_FALSE(client.was_reset());
  }
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().body_bytes == 0; }));
}

TEST(TransportLimits, ServesAMillionChunksOfOneByte) {
  ToyServer server;
  RawClient client(server.port());
  std::string chunks = "POST /m HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1'000'000; ++i) chunks += "1\r\nx\r\n";
  client.send(chunks + "0\r\n\r\n");
  EXPECT_EQ(client.read_answer().body.size(), 1'000'008u);
}

TEST(TransportLimits, BodiesShareOneMemoryLimit) {
  TransportOptions options;
  options.max_body_memory_bytes = 100'000;
  ToyServer server(options);
  RawClient first(server.port());
  first.send("POST /f HTTP/1.1\r\nHost: h\r\nContent-Length: 80000\r\n\r\n" + std::string(79'999, 'x'));
  ASSERT_TRUE(eventually([&] { return server.transport.statistics().body_bytes >= 79'999; }));
  RawClient second(server.port());
  second.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 80000\r\n\r\n" + std::string(80'000, 'x'));
  EXPECT_EQ(second.read_answer().status, 503);
  first.send("x");
  EXPECT_EQ(first.read_answer().body.size(), 80'008u);
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().body_bytes == 0; }));
}

TEST(TransportLimits, OneConnectionTooManyIsRefused) {
  TransportOptions options;
  options.max_connections = 3;
  ToyServer server(options);
  std::list<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(kGet);
    EXPECT_EQ(clients.back().read_answer().status, 200);
  }
  RawClient asking(server.port()), silent(server.port());
  asking.send(kGet);
  EXPECT_EQ(asking.read_answer().status, 503);
  EXPECT_TRUE(asking.closed());
  EXPECT_EQ(silent.read_answer().status, 503);  // it is told even so
  EXPECT_TRUE(silent.closed());
  asking.close();
  silent.close();
  EXPECT_EQ(server.transport.statistics().refused, 2u);
  clients.clear();
  ASSERT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
  expect_still_serving(server);
}

TEST(TransportLimits, OperatorsAreAnsweredByAFullServer) {
  TransportOptions options;
  options.max_connections = 2;
  ToyServer server(options);
  RawClient first(server.port()), second(server.port());
  first.send(kGet);
  second.send(kGet);
  EXPECT_EQ(first.read_answer().status, 200);
  EXPECT_EQ(second.read_answer().status, 200);
  for (const std::string method : {"GET", "HEAD"}) {
    RawClient probe(server.port());
    probe.send(method + " /health HTTP/1.1\r\nHost: h\r\n\r\n" + kGet);
    const Answer answer = probe.read_answer(method == "HEAD");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.field("connection"), "close");
    EXPECT_TRUE(probe.closed());
  }
  // No more than the question: a body could take its time.
  RawClient slow(server.port());
  slow.send("POST /health HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n");
  EXPECT_EQ(slow.read_answer().status, 503);
  EXPECT_EQ(server.transport.statistics().refused, 1u);
  EXPECT_EQ(server.transport.statistics().accepted, 4u);
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

TEST(TransportLimits, IdleConnectionsCostLittle) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own memory would be counted";
  ToyServer server;
  expect_still_serving(server);
  const int64_t before = resident_bytes();
  std::list<RawClient> clients;
  for (int i = 0; i < 400; ++i) {
    clients.emplace_back(server.port());
    ASSERT_TRUE(clients.back().connected());
    clients.back().send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n" +
                        std::string(60'000, 'x'));
    ASSERT_EQ(clients.back().read_answer().status, 200);
  }
  EXPECT_LT((resident_bytes() - before) / 400, 50'000);  // 100 MB for 2,000 of them
}

TEST(TransportDrain, IdleConnectionsAreClosedAtOnceAndNewOnesRefused) {
  ToyServer server;
  RawClient idle(server.port()), silent(server.port());
  idle.send(kGet);
  EXPECT_EQ(idle.read_answer().status, 200);
  const uint16_t port = server.port();
  EXPECT_TRUE(server.transport.drain(milliseconds(10'000)));
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(silent.closed());
  EXPECT_FALSE(RawClient(port).connected());
  EXPECT_EQ(server.transport.statistics().connections, 0);
}

TEST(TransportDrain, AnAnswerInProgressIsFinished) {
  ToyServer server;
  RawClient client(server.port());
  client.send("GET /gate HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.application.waiting == 1; }));
  auto drained = std::async(std::launch::async, [&] { return server.transport.drain(milliseconds(20'000)); });
  // Meanwhile newcomers have one answer each, and one who says nothing holds up nobody.
  RawClient silent(server.port());
  EXPECT_TRUE(eventually([&] {
    RawClient visitor(server.port());
    visitor.send(kGet + kGet);
    const Answer told = visitor.read_answer();
    return told.status == 200 && told.field("connection") == "close" && visitor.closed();
  }));
  EXPECT_EQ(server.application.waiting, 1);
  server.application.go = true;
  const Answer answer = client.read_answer();
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body, "begun.done.");
  EXPECT_TRUE(client.closed());
  client.close();
  EXPECT_TRUE(drained.get());
}

TEST(TransportDrain, RequestsUnderLoadAreAnsweredOrNeverAccepted) {
  ToyServer server;
  std::atomic<int> answered{0}, unanswered{0};
  std::vector<std::thread> users;
  for (int u = 0; u < 4; ++u) {
    users.emplace_back([&] {
      for (int i = 0; i < 10'000; ++i) {
        RawClient client(server.port());
        if (!client.connected()) return;
        client.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
        ++(client.read_answer().whole ? answered : unanswered);
      }
    });
  }
  ASSERT_TRUE(eventually([&] { return answered > 100; }));
  EXPECT_TRUE(server.transport.drain(milliseconds(10'000)));
  for (std::thread& user : users) user.join();
  // A connection whose handshake ends while its acceptor closes is reset by the kernel: at most one for each
  // user.
  EXPECT_LE(unanswered, 4);
}

TEST(TransportDrain, AnswersOpenAfterTheGraceAreCut) {
  ToyServer server;
  RawClient waiting(server.port()), streaming(server.port(), {.receive_buffer = 4096});
  waiting.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  streaming.send("GET /endless HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.application.waiting == 1 && server.application.written > 0; }));
  EXPECT_FALSE(server.transport.drain(milliseconds(100)));
  EXPECT_EQ(server.application.gone, 2);
  EXPECT_EQ(server.application.cancelled, 2);
  EXPECT_EQ(server.transport.statistics().connections, 0);
}

TEST(TransportDrain, AnswersThatTheApplicationEndsAfterTheGraceAreSent) {
  ToyServer server;
  RawClient streaming(server.port()), waiting(server.port());
  streaming.send("GET /gate HTTP/1.1\r\nHost: h\r\n\r\n");
  waiting.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.application.waiting == 2; }));
  auto reader = std::async(std::launch::async, [&] {
    const Answer answer = streaming.read_answer();
    streaming.close();
    return answer;
  });
  EXPECT_FALSE(server.transport.drain(milliseconds(50), [&] { server.application.go = true; }));
  const Answer told = reader.get();
  EXPECT_TRUE(told.whole);
  EXPECT_EQ(told.body, "begun.done.");
  EXPECT_EQ(waiting.read_answer().status, 0) << "what does not end is cut";
  EXPECT_EQ(server.application.cancelled, 1);
  EXPECT_EQ(server.transport.statistics().connections, 0);
}

TEST(TransportDrain, AnswersDoneWithinTheGraceAreNotCut) {
  ToyServer server;
  RawClient idle(server.port());
  idle.send(kGet);
  EXPECT_EQ(idle.read_answer().status, 200);
  bool ended = false;
  EXPECT_TRUE(server.transport.drain(milliseconds(10'000), [&] { ended = true; }));
  EXPECT_FALSE(ended);
}

TEST(TransportDrain, TheDestructorDrains) {
  RawClient* client = nullptr;
  {
    ToyServer server;
    client = new RawClient(server.port());
    client->send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return server.application.waiting == 1; }));
  }
  EXPECT_EQ(client->read_answer().status, 0);
  EXPECT_TRUE(client->closed());
  delete client;
}

}  // namespace
}  // namespace shoal::server
