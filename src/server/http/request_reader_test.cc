#include "server/http/request_reader.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace shoal::server {
namespace {

using Progress = RequestReader::Progress;

struct Outcome {
  Progress progress = Progress::more;
  std::string text;  // of all requests: "METHOD path body;", or the status of a refusal
  bool operator==(const Outcome&) const = default;
};

void feed(RequestReader& reader, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::span<char> space = reader.space();
    const size_t part = std::min(space.size(), bytes.size());
    std::copy_n(bytes.data(), part, space.data());
    reader.received(part);
    bytes.remove_prefix(part);
  }
}

// Reads as a connection does: bytes only when they are wanted, in parts of the given sizes.
class Reading {
 public:
  explicit Reading(int64_t max_body_bytes = 1 << 20, int64_t budget_bytes = 1 << 30)
      : budget(budget_bytes), reader(1024, budget), max_body_bytes_(max_body_bytes) {
    reader.start("peer");
  }

  // False: refused.
  bool read(std::string_view bytes) {
    feed(reader, bytes);
    for (;;) {
      outcome.progress = reader.advance();
      if (outcome.progress == Progress::more) return true;
      if (outcome.progress == Progress::refused) {
        outcome.text += std::to_string(reader.refusal().status);
        return false;
      }
      if (outcome.progress == Progress::head) {
        reader.accept_body(max_body_bytes_);
        continue;
      }
      const Request& request = reader.request();
      outcome.text += request.method + " " + request.path + " " + request.body + ";";
      reader.start("peer");
    }
  }

  BodyBudget budget;
  RequestReader reader;
  Outcome outcome;

 private:
  int64_t max_body_bytes_;
};

Outcome read_whole(std::string_view bytes, int64_t max_body_bytes = 1 << 20) {
  Reading reading(max_body_bytes);
  reading.read(bytes);
  return reading.outcome;
}

TEST(RequestReader, OneAfterTheOther) {
  const auto outcome = read_whole(
      "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
      "\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz"
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=\"v\"\r\nabc\r\n00\r\nTrailer: "
      "t\r\n\r\n"
      "DELETE /d HTTP/1.0\r\n\r\n");
  EXPECT_EQ(outcome.text, "GET /a ;POST /b xyz;POST /c abc;DELETE /d ;");
}

TEST(RequestReader, PartsOfAnySizeGiveTheSame) {
  const std::string bytes =
      "POST /%61?q HTTP/1.1\r\nHost: h\r\nFolded: a\r\n b\r\nTransfer-Encoding: chunked\r\n\r\n"
      "a\r\n0123456789\r\n1;x\r\nz\r\n0\r\nA: b\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\nPOST /n "
      "HTTP/1.1\r\nHost: "
      "h\r\nContent-Length: 5\r\n\r\n12345";
  const Outcome whole = read_whole(bytes);
  ASSERT_EQ(whole.text, "POST /a 0123456789z;GET /next ;POST /n 12345;");
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    Reading reading;
    for (size_t at = 0; at < bytes.size();) {
      const size_t part = 1 + random() % (trial < 5 ? 1 : 40);
      reading.read(std::string_view(bytes).substr(at, part));
      at += part;
    }
    EXPECT_EQ(reading.outcome, whole) << trial;
  }
}

TEST(RequestReader, RefusesWhatIsMalformed) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"GET / HTTP/1.1\nHost: h\n\n", 400},
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 400},
      {"GET /  HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: a" + std::string(1, '\0') + "b\r\n\r\n", 400},
      {"GET /%0 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x01", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0b"
       "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
  };
  for (const auto& [bytes, status] : cases)
    EXPECT_EQ(read_whole(bytes), (Outcome{Progress::refused, std::to_string(status)})) << bytes;
}

TEST(RequestReader, RefusesMalformedChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* bad :
       {"x\r\n", "-1\r\n", " 1\r\na\r\n0\r\n\r\n", "0x1\r\na\r\n", "1\na\n0\n\n", "1\r\nab\r\n0\r\n\r\n",
        "10000000000000000\r\n", "1;\"\r\na\r\n", "0\r\nbad trailer\r\n\r\n",
        "0\r\nContent-Length: 3\r\n\r\n", "0\r\nTransfer-Encoding: chunked\r\n\r\n"})
    EXPECT_EQ(read_whole(head + bad + "\r\n\r\n"), (Outcome{Progress::refused, "400"})) << bad;
}

TEST(RequestReader, TrailersChangeNothing) {
  Reading reading;
  feed(reading.reader,
       "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nAuthorization: x\r\n\r\n");
  ASSERT_EQ(reading.reader.advance(), Progress::head);
  reading.reader.accept_body(10);
  ASSERT_EQ(reading.reader.advance(), Progress::whole);
  EXPECT_EQ(reading.reader.request().headers.find("authorization"), nullptr);
}

TEST(RequestReader, LongHeadsAndLinesAreRefused) {
  const std::string request = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
  EXPECT_EQ(read_whole(request + std::string(2000, 'x')).text, "431");
  EXPECT_EQ(read_whole("GET /" + std::string(2000, 'x')).text, "431");
  EXPECT_EQ(
      read_whole("GET / HTTP/1.1\r\nHost: h\r\n" + std::string(600, 'x') + ":1\r\n" + std::string(600, 'y'))
          .text,
      "431");
  EXPECT_EQ(read_whole(request + std::string(900, 'x') + "\r\n\r\n").text, "GET / ;");
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read_whole(chunked + "1;" + std::string(5000, 'x')).text, "431");
  EXPECT_EQ(read_whole(chunked + "0\r\nX: " + std::string(5000, 'x')).text, "431");
}

TEST(RequestReader, BodiesAreHeldToTheirLimit) {
  const std::string known = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ";
  EXPECT_EQ(read_whole(known + "10\r\n\r\n0123456789", 10).text, "POST / 0123456789;");
  EXPECT_EQ(read_whole(known + "11\r\n\r\n", 10).text, "413");
  EXPECT_EQ(read_whole(known + "999999999999999999\r\n\r\n", 10).text, "413");
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read_whole(chunked + "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", 10).text, "POST / 0123456789;");
  EXPECT_EQ(read_whole(chunked + "5\r\n01234\r\n6\r\n", 10).text, "413");
  EXPECT_EQ(read_whole(chunked + "ffffffffffffffff\r\n", 10).text, "413");
  EXPECT_EQ(read_whole(chunked + "0\r\n\r\n", 0).text, "POST / ;");
}

TEST(RequestReader, AMillionChunksOfOneByte) {
  Reading reading;
  std::string chunks = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1'000'000; ++i) chunks += "1\r\nx\r\n";
  reading.read(chunks + "0\r\n\r\n");
  EXPECT_EQ(reading.outcome.text, "POST / " + std::string(1'000'000, 'x') + ";");
  EXPECT_EQ(reading.budget.held(), 0);
}

TEST(RequestReader, TheBudgetHoldsWhatBodiesHold) {
  Reading reading(1 << 20, 1000);
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1500\r\n\r\n";
  EXPECT_TRUE(reading.read(head));
  EXPECT_EQ(reading.budget.held(), 0);  // announcing costs nothing
  EXPECT_TRUE(reading.read(std::string(600, 'x')));
  EXPECT_EQ(reading.budget.held(), 600);
  EXPECT_FALSE(reading.read(std::string(600, 'x')));
  EXPECT_EQ(reading.outcome.text, "503");
  EXPECT_EQ(reading.budget.held(), 0);
}

TEST(RequestReader, KnowsWhatTheConnectionMustKnow) {
  struct Case {
    const char* head;
    bool keep_alive, upgrade;
  };
  for (const Case& c :
       {Case{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true, false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\n\r\n", false, false},
        {"GET / HTTP/1.0\r\n\r\n", false, false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n", true, true},
        {"POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", true, false},
        {"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n", true, false}}) {
    Reading reading;
    feed(reading.reader, c.head);
    ASSERT_EQ(reading.reader.advance(), Progress::head) << c.head;
    EXPECT_EQ(reading.reader.keep_alive(), c.keep_alive) << c.head;
    EXPECT_EQ(reading.reader.wants_websocket(), c.upgrade) << c.head;
  }
}

}  // namespace
}  // namespace shoal::server
