// Answers in pieces, and clients that leave or dawdle.
#include <gtest/gtest.h>
#include <random>

#include "server/http/raw_client_testing.h"
#include "server/http/toy_application_testing.h"

namespace shoal::server {
namespace {

using std::chrono::milliseconds;

std::string get_stream(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"; }

TEST(TransportStream, EachPieceIsAChunk) {
  ToyServer server;
  RawClient client(server.port());
  client.send(get_stream("/stream?pieces=30&bytes=70000"));
  const Answer answer = client.read_answer();
  ASSERT_TRUE(answer.whole);
  std::string expected = "begin";
  for (size_t i = 0; i < 30; ++i) expected += std::string(70'000, static_cast<char>('a' + i % 26));
  EXPECT_EQ(answer.body, expected);
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 1; }));
  EXPECT_EQ(server.application.records()[0].second.bytes_sent, expected.size());
}

TEST(TransportStream, APieceGoesOutAtOnce) {
  ToyServer server;
  RawClient client(server.port());
  client.send(get_stream("/gate"));
  EXPECT_TRUE(client.read_until("begun.\r\n").ends_with("6\r\nbegun.\r\n"));
  server.application.go = true;
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "5\r\ndone.\r\n0\r\n\r\n");
}

enum class Leave { close, reset, half_close, behind_pipelined };

class ClientLeaves : public testing::TestWithParam<Leave> {
 protected:
  static void leave(RawClient& client) {
    if (GetParam() == Leave::behind_pipelined) client.send(get_stream("/pipelined"));
    if (GetParam() == Leave::close || GetParam() == Leave::behind_pipelined) client.close();
    if (GetParam() == Leave::reset) client.reset();
    if (GetParam() == Leave::half_close) client.half_close();
  }
};

TEST_P(ClientLeaves, IsNoticedWhileTheHandlerWaits) {
  ToyServer server;
  RawClient client(server.port());
  client.send(get_stream("/wait"));
  ASSERT_TRUE(eventually([&] { return server.application.waiting == 1; }));
  EXPECT_EQ(server.application.gone, 0);
  leave(client);
  EXPECT_TRUE(eventually([&] { return server.application.gone == 1 && server.application.cancelled == 1; }));
  ASSERT_TRUE(eventually([&] { return server.application.records().size() >= 1; }));
  EXPECT_EQ(server.application.records()[0].second.status, 0);
  EXPECT_EQ(server.application.records().size(), 1u);
  client.close();
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
}

TEST_P(ClientLeaves, IsNoticedWhileStreaming) {
  ToyServer server;
  RawClient client(server.port());
  client.send(get_stream("/endless"));
  client.read(100'000);
  leave(client);
  EXPECT_TRUE(eventually([&] { return server.application.gone == 1 && server.application.cancelled == 1; }));
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 1; }));
  const RequestRecord record = server.application.records()[0].second;
  EXPECT_EQ(record.status, 200);
  EXPECT_FALSE(record.whole);
}

TEST_P(ClientLeaves, IsNoticedWhileItReadsNothing) {
  ToyServer server;
  RawClient client(server.port(), {.receive_buffer = 4096});
  client.send(get_stream("/endless"));
  // The handler stands in write(): the watcher must free it.
  int64_t last = -1;
  ASSERT_TRUE(eventually([&] {
    std::this_thread::sleep_for(milliseconds(20));
    return std::exchange(last, server.application.written.load()) == server.application.written && last > 0;
  }));
  leave(client);
  EXPECT_TRUE(eventually([&] { return server.application.gone == 1 && server.application.cancelled == 1; }));
}

INSTANTIATE_TEST_SUITE_P(All, ClientLeaves,
                         testing::Values(Leave::close, Leave::reset, Leave::half_close,
                                         Leave::behind_pipelined));

TEST(TransportStream, AClientThatOnlyPipelinesHasNotLeft) {
  ToyServer server;
  RawClient client(server.port());
  client.send(get_stream("/wait?ms=400") + get_stream("/next"));
  EXPECT_EQ(client.read_answer().body, "waited");
  EXPECT_EQ(client.read_answer().body, "GET /next\n");
  EXPECT_EQ(server.application.gone, 0);
}

TEST(TransportStream, AClientThatLeavesAfterItsAnswerIsNotReported) {
  ToyServer server;
  {
    RawClient client(server.port());
    client.send(get_stream("/wait?ms=1") + get_stream("/stream"));
    EXPECT_EQ(client.read_answer().body, "waited");
    EXPECT_TRUE(client.read_answer().whole);
  }
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
  EXPECT_EQ(server.application.gone, 0);
}

TEST(TransportStream, ASlowReaderHoldsUpOnlyItself) {
  TransportOptions options;
  options.threads = 1;
  ToyServer server(options);
  RawClient slow(server.port(), {.receive_buffer = 4096});
  slow.send(get_stream("/endless"));
  int64_t last = -1;
  ASSERT_TRUE(eventually([&] {
    std::this_thread::sleep_for(milliseconds(20));
    return std::exchange(last, server.application.written.load()) == server.application.written && last > 0;
  }));
  // The kernel has taken what it takes, and write() waits: no more than its buffers is on the way.
  EXPECT_LT(last, 8 << 20);
  for (int i = 0; i < 20; ++i) {
    RawClient other(server.port());
    other.send(get_stream("/stream?pieces=20&bytes=10000"));
    EXPECT_TRUE(other.read_answer().whole);
  }
  slow.read(static_cast<size_t>(last) / 2);
  EXPECT_TRUE(eventually([&] { return server.application.written > last; }));
}

TEST(TransportStream, AReaderThatReadsNothingIsCut) {
  TransportOptions options;
  options.write_timeout = milliseconds(300);
  ToyServer server(options);
  RawClient client(server.port(), {.receive_buffer = 4096});
  client.send(get_stream("/endless"));
  EXPECT_TRUE(eventually([&] { return server.application.too_slow == 1; }));
  EXPECT_EQ(server.application.gone, 0);
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
}

// Whether a reader gets one write whole that takes him three times the timeout.
bool gets_a_long_write(milliseconds write_timeout) {
  TransportOptions options;
  options.write_timeout = write_timeout;
  ToyServer server(options);
  RawClient client(server.port(), {.receive_buffer = 4096});
  client.send(get_stream("/stream?pieces=1&bytes=3000000"));
  EXPECT_EQ(client.read_answer(true).status, 200);
  size_t total = 0;
  for (int i = 0; i < 14; ++i) {
    std::this_thread::sleep_for(write_timeout * 3 / 14);
    total += client.read(200'000).size();
  }
  if (server.application.too_slow > 0) return false;
  client.read_until("0\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.application.records().size() == 1; }));
  return total == 2'800'000u && server.application.records()[0].second.whole;
}

TEST(TransportStream, ASlowButSteadyReaderIsNotCut) {
  bool whole = false;
  // A busy machine may itself pause for longer than the first times.
  for (int timeout_ms = 700; timeout_ms <= 11'200 && !whole; timeout_ms *= 2)
    whole = gets_a_long_write(milliseconds(timeout_ms));
  EXPECT_TRUE(whole);
}

// Not megabytes, minutes of mp3: whoever makes them would take them for heard.
TEST(TransportStream, TheKernelBuffersLittleForAReaderThatReadsNothing) {
  ToyServer server;
  RawClient client(server.port(), {.receive_buffer = 4096});
  client.send(get_stream("/endless"));
  int64_t last = -1;
  ASSERT_TRUE(eventually([&] {
    std::this_thread::sleep_for(milliseconds(200));
    return std::exchange(last, server.application.written.load()) == server.application.written && last > 0;
  }));
  EXPECT_LT(last, 512 << 10);
}

TEST(TransportStream, ManyClientsMayComeAndGo) {
  ToyServer server;
  std::vector<std::thread> users;
  std::atomic<int> wrong{0};
  for (unsigned u = 0; u < 6; ++u) {
    users.emplace_back([&, u] {
      std::mt19937 random(u);
      for (int i = 0; i < 60; ++i) {
        RawClient client(server.port());
        switch (random() % 5) {
          case 0:
            client.send("GET / HT");
            break;
          case 1:
            client.send(get_stream("/endless"));
            client.read(random() % 50'000);
            break;
          case 2:
            client.send(get_stream("/wait"));
            break;
          case 3:
            client.send(get_stream("/stream?pieces=9&bytes=999"));
            wrong += client.read_answer().body.size() != 9u * 999 + 5;
            break;
          default:
            client.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody");
            wrong += client.read_answer().body != "POST /p\nbody";
        }
        if (random() % 2 == 0) client.reset();
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
  EXPECT_EQ(server.transport.statistics().body_bytes, 0);
}

}  // namespace
}  // namespace shoal::server
