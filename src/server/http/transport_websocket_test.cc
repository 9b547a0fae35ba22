// WebSockets, against frames made and read here.
#include <gtest/gtest.h>

#include "server/http/raw_client_testing.h"
#include "server/http/toy_application_testing.h"

namespace shoal::server {
namespace {

using std::chrono::milliseconds;

enum Opcode : uint8_t { kContinuation = 0, kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };

struct Frame {
  int opcode = -1;  // -1: the connection has ended
  bool final = false;
  std::string data;
};

// RFC 6455 5.2; a client masks.
std::string frame(uint8_t opcode, const std::string& data, bool final = true, bool masked = true) {
  std::string bytes(1, static_cast<char>((final ? 0x80 : 0) | opcode));
  const char mask_bit = static_cast<char>(masked ? 0x80 : 0);
  if (data.size() < 126) {
    bytes += static_cast<char>(mask_bit | static_cast<char>(data.size()));
  } else if (data.size() < 65536) {
    bytes += static_cast<char>(mask_bit | 126);
    for (int shift = 8; shift >= 0; shift -= 8) bytes += static_cast<char>(data.size() >> shift);
  } else {
    bytes += static_cast<char>(mask_bit | 127);
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(data.size() >> shift);
  }
  if (!masked) return bytes + data;
  const std::string mask = "\x11\x22\x33\x44";
  bytes += mask;
  for (size_t i = 0; i < data.size(); ++i) bytes += static_cast<char>(data[i] ^ mask[i % 4]);
  return bytes;
}

class SocketClient {
 public:
  explicit SocketClient(uint16_t port, const std::string& path = "/ws", RawClient::Options options = {},
                        const std::string& fields = "")
      : raw(port, options) {
    raw.send("GET " + path +
             " HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
             fields + "\r\n");
    answer = raw.read_answer();
  }

  Frame read_frame() {
    const std::string head = raw.read(2);
    if (head.size() < 2) return {};
    EXPECT_EQ(head[1] & 0x80, 0) << "a server masks nothing";
    size_t size = head[1] & 0x7f;
    if (size >= 126) {
      const std::string length = raw.read(size == 126 ? 2 : 8);
      size = 0;
      for (const char c : length) size = size << 8 | static_cast<unsigned char>(c);
    }
    return {head[0] & 0x0f, (head[0] & 0x80) != 0, raw.read(size)};
  }
  // Of a whole message.
  Frame read_message() {
    Frame message = read_frame();
    while (message.opcode >= 0 && !message.final) {
      const Frame next = read_frame();
      if (next.opcode != kContinuation) return {};
      message.data += next.data;
      message.final = next.final;
    }
    return message;
  }
  // The code of the close frame that comes next; 0: something else came.
  int read_close() {
    const Frame last = read_frame();
    if (last.opcode != kClose || last.data.size() < 2) return 0;
    return static_cast<unsigned char>(last.data[0]) << 8 | static_cast<unsigned char>(last.data[1]);
  }

  RawClient raw;
  Answer answer;
};

class TransportWebSocket : public testing::Test {
 protected:
  static TransportOptions options() {
    TransportOptions wanted;
    wanted.threads = 2;
    return wanted;
  }
  ToyServer server{options()};
};

TEST_F(TransportWebSocket, Upgrades) {
  SocketClient client(server.port());
  EXPECT_EQ(client.answer.status, 101);
  EXPECT_EQ(client.answer.field("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // RFC 6455 1.3
  EXPECT_EQ(client.answer.field("x-request-id"), "id-1");
  EXPECT_EQ(server.transport.statistics().websockets, 1);
}

TEST_F(TransportWebSocket, EchoesTextAndBytesOfAnySize) {
  SocketClient client(server.port());
  for (const size_t size : {0, 1, 125, 126, 127, 4096, 65535, 65536}) {
    const std::string text(size, 't'), bytes(size, '\xff');
    client.raw.send(frame(kText, text) + frame(kBinary, bytes));
    const Frame first = client.read_message(), second = client.read_message();
    EXPECT_EQ(first.opcode, kText);
    EXPECT_EQ(first.data, text);
    EXPECT_EQ(second.opcode, kBinary);
    EXPECT_EQ(second.data, bytes);
  }
}

TEST_F(TransportWebSocket, FramesSentRightAfterTheUpgradeAreKept) {
  RawClient raw(server.port());
  raw.send(
      "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
      "13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" +
      frame(kText, "early"));
  EXPECT_EQ(raw.read_answer().status, 101);
  EXPECT_EQ(raw.read(7),
            "\x81\x05"
            "early");
}

TEST_F(TransportWebSocket, FragmentsWithPingsBetweenMakeOneMessage) {
  SocketClient client(server.port());
  client.raw.send(frame(kText, "caf\xc3", false) + frame(kPing, "are you there") +
                  frame(kContinuation, "\xa9 ", false) + frame(kContinuation, "au lait"));
  const Frame pong = client.read_frame();
  EXPECT_EQ(pong.opcode, kPong);
  EXPECT_EQ(pong.data, "are you there");
  EXPECT_EQ(client.read_message().data, "caf\xc3\xa9 au lait");
}

TEST_F(TransportWebSocket, ReadsFramesByteByByte) {
  SocketClient client(server.port());
  for (const char c : frame(kText, "slowly") + frame(kPing, "") + frame(kClose, "\x03\xe8"))
    client.raw.send({&c, 1});
  EXPECT_EQ(client.read_message().data, "slowly");
  EXPECT_EQ(client.read_frame().opcode, kPong);
  EXPECT_EQ(client.read_close(), 1000);
}

TEST_F(TransportWebSocket, AnswersACloseOfThePeer) {
  SocketClient client(server.port());
  client.raw.send(frame(kClose,
                        "\x03\xe8"
                        "bye"));
  EXPECT_EQ(client.read_close(), 1000);
  EXPECT_TRUE(client.raw.closed());
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 1; }));
  EXPECT_EQ(server.application.records()[0].second.status, 101);
  EXPECT_TRUE(server.application.records()[0].second.whole);
  client.raw.close();
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().websockets == 0; }));
}

TEST_F(TransportWebSocket, SendsTheCloseOfTheApplication) {
  SocketClient client(server.port());
  client.raw.send(frame(kText, "close me"));
  const Frame last = client.read_frame();
  EXPECT_EQ(last.opcode, kClose);
  EXPECT_EQ(last.data,
            "\x03\xf0"
            "as you wish");
  client.raw.send(frame(kText, "too late") + frame(kClose, last.data));
  EXPECT_TRUE(client.raw.closed());
}

TEST_F(TransportWebSocket, AnApplicationThatThrowsClosesWith1011) {
  SocketClient client(server.port(), "/ws/throw");
  EXPECT_EQ(client.read_close(), 1011);
}

TEST_F(TransportWebSocket, ProtocolErrorsCloseWithTheirReason) {
  struct Case {
    std::string bytes;
    int code;
  };
  const std::string reserved = frame(kText, "x");
  for (const Case& c :
       {Case{frame(kText, std::string(65 << 10, 'x')), 1009},
        {frame(kText, std::string(40 << 10, 'x'), false) + frame(kContinuation, std::string(40 << 10, 'x')),
         1009},
        {frame(kText, "caf\xc3", false) + frame(kContinuation, ""), 1007},
        {frame(kText, "\xff\xfe"), 1007},
        {frame(kText, "caf\xc3"), 1007},
        {frame(kText, "\xed\xa0\x80"), 1007},
        {frame(kText, "x", true, false), 1002},
        {frame(kContinuation, "x"), 1002},
        {frame(kText, "x", false) + frame(kText, "y"), 1002},
        {frame(3, "x"), 1002},
        {frame(11, "x"), 1002},
        {frame(kPing, std::string(126, 'x')), 1002},
        {frame(kPing, "x", false), 1002},
        {frame(kClose, "x"), 1002},
        {std::string(1, '\xc1') + reserved.substr(1), 1002}}) {
    SocketClient client(server.port());
    client.raw.send(c.bytes);
    EXPECT_EQ(client.read_close(), c.code);
    EXPECT_TRUE(client.raw.closed());
  }
  EXPECT_TRUE(eventually([&] { return server.application.records().size() == 15; }));
}

TEST_F(TransportWebSocket, BadUpgradesAreRefused) {
  const auto status_of = [&](const std::string& fields) {
    RawClient raw(server.port());
    raw.send("GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" + fields +
             "\r\n");
    return raw.read_answer().status;
  };
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  EXPECT_EQ(status_of(key + "Sec-WebSocket-Version: 8\r\n"), 426);
  EXPECT_EQ(status_of(key), 426);
  EXPECT_EQ(status_of("Sec-WebSocket-Version: 13\r\n"), 400);
  EXPECT_EQ(status_of(key + "Sec-WebSocket-Version: 13\r\nContent-Length: 2\r\n"), 400);
  // Where no WebSocket is served, the request is an ordinary one.
  RawClient raw(server.port());
  raw.send("GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(raw.read_answer().status, 200);
}

TEST_F(TransportWebSocket, ClientsThatVanishAreNoticed) {
  for (const bool reset : {false, true}) {
    SocketClient client(server.port());
    client.raw.send(frame(kText, "half", false));
    if (reset)
      client.raw.reset();
    else
      client.raw.close();
  }
  ASSERT_TRUE(eventually([&] { return server.application.records().size() == 2; }));
  for (const auto& [request, record] : server.application.records()) EXPECT_FALSE(record.whole);
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
}

TEST_F(TransportWebSocket, AnswersOnlyWithTheSubprotocolOfTheApplication) {
  const auto protocol_for = [&](const std::string& offered) {
    SocketClient client(server.port(), "/ws", {}, "Sec-WebSocket-Protocol: " + offered + "\r\n");
    EXPECT_EQ(client.answer.status, 101);
    return client.answer.field("sec-websocket-protocol");
  };
  EXPECT_EQ(protocol_for("secret.abc, toy"), "toy");
  EXPECT_EQ(protocol_for("secret.abc"), "");
}

TEST(TransportWebSocketMemory, HalfReceivedMessagesShareTheMemoryOfBodies) {
  TransportOptions options;
  options.max_body_memory_bytes = 200'000;
  ToyServer server(options);
  server.application.max_message_bytes = 1 << 20;
  const auto held = [&] { return server.transport.statistics().body_bytes; };
  SocketClient idle(server.port()), first(server.port());
  EXPECT_EQ(held(), 0) << "a WebSocket that says nothing costs nothing";
  const std::string message = frame(kBinary, std::string(80'000, 'x'));
  first.raw.send(message.substr(0, message.size() - 1));
  EXPECT_TRUE(eventually([&] { return held() >= 79'999; }));
  EXPECT_LE(held(), 200'000);
  SocketClient second(server.port());
  second.raw.send(message);
  EXPECT_EQ(second.read_close(), 1013);
  EXPECT_TRUE(second.raw.closed());
  first.raw.send(message.substr(message.size() - 1));
  EXPECT_EQ(first.read_message().data.size(), 80'000u);
  EXPECT_TRUE(eventually([&] { return held() == 0; })) << "given back when the next message is waited for";
  idle.raw.send(frame(kText, "still here"));
  EXPECT_EQ(idle.read_message().data, "still here");
}

TEST(TransportWebSocketMemory, APeerThatLeavesMidMessageFreesItsMemory) {
  ToyServer server;
  server.application.max_message_bytes = 1 << 20;
  SocketClient client(server.port());
  const std::string message = frame(kBinary, std::string(200'000, 'x'));
  client.raw.send(message.substr(0, 150'000));
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().body_bytes > 100'000; }));
  client.raw.reset();
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().body_bytes == 0; }));
}

// What a peer that answers three pings is told after "still here".
std::string echo_after_pings(SocketClient& live) {
  for (int i = 0; i < 3; ++i) {
    if (live.read_frame().opcode != kPing) return "";
    live.raw.send(frame(kPong, ""));
  }
  live.raw.send(frame(kText, "still here"));
  Frame echo = live.read_frame();
  while (echo.opcode == kPing) echo = live.read_frame();
  return echo.data;
}

TEST(TransportWebSocketTime, SilentPeersArePingedAndThenDropped) {
  std::string echo;
  // A busy machine may keep the living one from answering in time.
  for (int timeout_ms = 1500; timeout_ms <= 12'000 && echo != "still here"; timeout_ms *= 2) {
    TransportOptions options;
    options.idle_timeout = milliseconds(timeout_ms);
    ToyServer server(options);
    SocketClient live(server.port()), dead(server.port());
    echo = echo_after_pings(live);
    EXPECT_EQ(dead.read_frame().opcode, kPing);
    EXPECT_TRUE(dead.raw.closed());
  }
  EXPECT_EQ(echo, "still here");
}

TEST(TransportWebSocketTime, APeerThatReadsNothingIsCut) {
  TransportOptions options;
  options.write_timeout = milliseconds(300);
  ToyServer server(options);
  SocketClient client(server.port(), "/ws/flood", {.receive_buffer = 4096});
  EXPECT_TRUE(eventually([&] { return server.application.too_slow == 1; }));
  EXPECT_TRUE(eventually([&] { return server.transport.statistics().connections == 0; }));
}

TEST(TransportWebSocketTime, ConnectionsOpenAfterTheGraceAreCut) {
  ToyServer server;
  SocketClient client(server.port());
  EXPECT_FALSE(server.transport.drain(milliseconds(50)));
  EXPECT_TRUE(client.raw.closed());
  EXPECT_EQ(server.transport.statistics().websockets, 0);
}

}  // namespace
}  // namespace shoal::server
