#include "server/http/request_reader.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <utility>
#include <zlib.h>

#include "base/error.h"

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

TEST(RequestReader, ReadsConsecutiveRequests) {
  const auto outcome = read_whole(
      "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
      "\r\n\r\nPOST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz"
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;ext=\"v\"\r\nabc\r\n00\r\nTrailer: "
      "t\r\n\r\n"
      "DELETE /d HTTP/1.0\r\n\r\n");
  EXPECT_EQ(outcome.text, "GET /a ;POST /b xyz;POST /c abc;DELETE /d ;");
}

TEST(RequestReader, PartsOfAnySizeGiveTheSameRequest) {
  const std::string bytes =
      "POST /%61?q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
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

TEST(RequestReader, RefusesMalformedRequests) {
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

TEST(RequestReader, BodiesOverTheLimitAreRefused) {
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

TEST(RequestReader, ReadsAMillionChunksOfOneByte) {
  Reading reading;
  std::string chunks = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1'000'000; ++i) chunks += "1\r\nx\r\n";
  reading.read(chunks + "0\r\n\r\n");
  EXPECT_EQ(reading.outcome.text, "POST / " + std::string(1'000'000, 'x') + ";");
  EXPECT_EQ(reading.budget.held(), 0);
}

TEST(RequestReader, TheBudgetCountsTheMemoryOfBodies) {
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

TEST(RequestReader, ReportsKeepAliveAndUpgrade) {
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

TEST(RequestReader, FoldedFieldsAreRefused) {
  for (const char* fold : {"X: a\r\n b\r\n", "X: a\r\n\tb\r\n", "X:\r\n \r\n", "X: a\r\n \r\n Y: b\r\n"}) {
    const std::string head = concat("GET / HTTP/1.1\r\nHost: h\r\n", fold, "\r\n");
    EXPECT_EQ(read_whole(head).text, "400") << fold;
    Reading bytewise;
    for (size_t i = 0; i < head.size() && bytewise.read(head.substr(i, 1)); ++i) {
    }
    EXPECT_EQ(bytewise.outcome.text, "400") << fold;
  }
}

// RFC 1950 and 1952, by the library itself.
std::string compressed(const std::string& text, bool gzip = true) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string coded_post(const std::string& coding, const std::string& body) {
  return concat("POST /p HTTP/1.1\r\nHost: h\r\nContent-Encoding: ", coding,
                "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

// Text that shrinks, but not like a bomb.
std::string prose(size_t bytes) {
  std::mt19937 random(7);
  std::string text;
  while (text.size() < bytes) text += concat("word", random() % 1000, ' ');
  return text.substr(0, bytes);
}

TEST(RequestReader, DecompressesBodies) {
  const std::string text = prose(300'000);
  for (const auto& [coding, bytes] :
       {std::pair{"gzip", compressed(text)},
        {"x-gzip", compressed(text)},
        {"GZIP", compressed(text)},
        {"deflate", compressed(text, false)},
        {"identity", text},
        {"", text},
        {"gzip", compressed(text.substr(0, 99'999)) + compressed(text.substr(99'999))}}) {
    EXPECT_EQ(read_whole(coded_post(coding, bytes) + "GET /next HTTP/1.1\r\nHost: h\r\n\r\n").text,
              concat("POST /p ", text, ";GET /next ;"))
        << coding;
  }
  const std::string small = coded_post("gzip", compressed("{}"));
  Reading bytewise;
  for (const char c : small) EXPECT_TRUE(bytewise.read({&c, 1}));
  EXPECT_EQ(bytewise.outcome.text, "POST /p {};");
  EXPECT_EQ(read_whole(coded_post("gzip", "")).text, "POST /p ;") << "no body has no coding";
}

TEST(RequestReader, OtherCodingsAreRefusedByName) {
  for (const char* coding : {"br", "zstd", "compress", "gzip, gzip", "gzip, identity", "nonsense"}) {
    EXPECT_EQ(read_whole(coded_post(coding, "x")).text, "415") << coding;
    Reading reading;
    reading.read(coded_post(coding, "x"));
    EXPECT_NE(reading.reader.refusal().message.find("gzip, deflate"), std::string::npos);
  }
  const std::string twice = "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n";
  EXPECT_EQ(read_whole(concat("POST / HTTP/1.1\r\nHost: h\r\n", twice, "Content-Length: 1\r\n\r\nx")).text,
            "415");
  EXPECT_EQ(read_whole("GET / HTTP/1.1\r\nHost: h\r\nContent-Encoding: br\r\n\r\n").text, "GET / ;");
}

TEST(RequestReader, BrokenCompressedBodiesAreRefused) {
  const std::string whole = compressed(prose(10'000));
  std::string wrong_sum = whole;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  std::string wrong_middle = whole;
  wrong_middle[whole.size() / 2] ^= 0x55;
  for (const std::string& body : {whole.substr(0, whole.size() - 1), whole.substr(0, 5), std::string("{}"),
                                  wrong_sum, wrong_middle, whole + "rubbish behind it"})
    EXPECT_EQ(read_whole(coded_post("gzip", body)).text, "400");
  EXPECT_EQ(read_whole(coded_post("deflate", compressed("{}", false) + "x")).text, "400");
  EXPECT_EQ(read_whole(coded_post("deflate", compressed("{}"))).text, "400") << "gzip is no deflate";
}

TEST(RequestReader, CompressedBodiesObeyLimitBudgetAndRatio) {
  Reading limited(100'000);
  EXPECT_FALSE(limited.read(coded_post("gzip", compressed(prose(100'001)))));
  EXPECT_EQ(limited.outcome.text, "413");
  EXPECT_EQ(limited.budget.held(), 0);
  EXPECT_EQ(read_whole(coded_post("gzip", compressed(prose(100'000))), 100'000).text.size(), 100'009u);

  Reading poor(1 << 20, 50'000);
  EXPECT_FALSE(poor.read(coded_post("gzip", compressed(prose(60'000)))));
  EXPECT_EQ(poor.outcome.text, "503");
  EXPECT_EQ(poor.budget.held(), 0);

  // 64 MB of zeros in 64 KB: ended long before the limit of the body.
  Reading bomb(int64_t{1} << 30);
  EXPECT_FALSE(bomb.read(coded_post("gzip", compressed(std::string(64 << 20, '\0')))));
  EXPECT_EQ(bomb.outcome.text, "413");
  EXPECT_EQ(bomb.budget.held(), 0);
  EXPECT_EQ(read_whole(coded_post("gzip", compressed(std::string(500'000, ' ')))).text.size(), 500'009u)
      << "a small body may be as even as it likes";
}

}  // namespace
}  // namespace shoal::server
