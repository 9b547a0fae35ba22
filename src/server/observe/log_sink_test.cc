#include "server/observe/log_sink.h"

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <random>
#include <regex>
#include <thread>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/printable.h"
#include "server/observe/log_line.h"

namespace shoal::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;

Request request_of(std::string path) {
  Request request;
  request.method = "POST";
  request.path = std::move(path);
  request.peer = "10.0.0.7:1234";
  request.id = "req-1";
  request.client = "site";
  request.route = "/v1/tts";
  return request;
}

RequestRecord ok() {
  return {.status = 200,
          .whole = true,
          .bytes_received = 12,
          .bytes_sent = 34567,
          .duration = std::chrono::microseconds(1500)};
}

// What `write` makes the log say.
template <typename Write>
std::vector<std::string> lines_of(const ServerConfig& config, Write&& write) {
  std::FILE* const file = std::tmpfile();
  {
    const ServerLog log(config, file);
    write();
  }
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_NE(end, std::string::npos) << "an unfinished line";
    if (end == std::string::npos) break;
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Json object_of(const std::string& line) {
  Json json = Json::parse(line, "line");
  static const std::regex kTime(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  EXPECT_TRUE(std::regex_match(json.at("time").as_string(), kTime)) << line;
  return json;
}

TEST(ServerLog, MessagesAreObjectsWithTimeAndLevel) {
  const auto lines = lines_of({.log_format = "json"}, [] {
    log(LogLevel::info, "hello");
    log(LogLevel::warning, "line\nbreak \"quoted\" \\ \x01");
    log(LogLevel::error, "not UTF-8: \xff\xc3");
  });
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(object_of(lines[0]).at("message").as_string(), "hello");
  EXPECT_EQ(object_of(lines[0]).at("level").as_string(), "info");
  EXPECT_EQ(object_of(lines[1]).at("message").as_string(), "line\nbreak \"quoted\" \\ \x01");
  EXPECT_EQ(object_of(lines[1]).at("level").as_string(), "warning");
  EXPECT_THAT(object_of(lines[2]).at("message").as_string(), testing::StartsWith("not UTF-8: \xef\xbf\xbd"));
  EXPECT_EQ(object_of(lines[2]).at("level").as_string(), "error");
}

TEST(ServerLog, TheTimeIsNowInUtc) {
  const auto lines = lines_of({}, [] { log(LogLevel::info, "x"); });
  ASSERT_THAT(lines, SizeIs(1));
  const std::time_t now = std::time(nullptr), before = now - 60;
  char today[16], earlier[16];
  std::strftime(today, sizeof today, "%Y-%m-%dT%H:", std::gmtime(&now));
  std::strftime(earlier, sizeof earlier, "%Y-%m-%dT%H:", std::gmtime(&before));
  EXPECT_THAT(lines[0], testing::AnyOf(testing::StartsWith(today), testing::StartsWith(earlier)));
}

TEST(ServerLog, MessagesBelowTheLevelAreDropped) {
  const auto count = [](const char* level) {
    return lines_of({.log_level = level},
                    [] {
                      for (const LogLevel each :
                           {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::error})
                        log(each, "x");
                      log_request(request_of("/"), ok());
                    })
        .size();
  };
  EXPECT_EQ(count("debug"), 5u);
  EXPECT_EQ(count("info"), 4u);
  EXPECT_EQ(count("warning"), 2u);
  EXPECT_EQ(count("error"), 1u);
}

TEST(ServerLog, ARequestIsOneLineWithItsFigures) {
  const auto write = [] { log_request(request_of("/v1/tts"), ok()); };
  const auto json = lines_of({.log_format = "json"}, write);
  ASSERT_THAT(json, SizeIs(1));
  const Json line = object_of(json[0]);
  EXPECT_EQ(line.at("id").as_string(), "req-1");
  EXPECT_EQ(line.at("method").as_string(), "POST");
  EXPECT_EQ(line.at("path").as_string(), "/v1/tts");
  EXPECT_EQ(line.at("route").as_string(), "/v1/tts");
  EXPECT_EQ(line.at("status").as_integer(), 200);
  EXPECT_TRUE(line.at("whole").as_bool());
  EXPECT_EQ(line.at("duration_ms").as_number(), 1.5);
  EXPECT_EQ(line.at("bytes_received").as_integer(), 12);
  EXPECT_EQ(line.at("bytes_sent").as_integer(), 34567);
  EXPECT_EQ(line.at("client").as_string(), "site");
  EXPECT_EQ(line.at("peer").as_string(), "10.0.0.7:1234");
  const auto text = lines_of({}, write);
  ASSERT_THAT(text, SizeIs(1));
  EXPECT_THAT(text[0], testing::EndsWith("Z info    POST /v1/tts 200 id=req-1 route=/v1/tts whole=true "
                                         "duration_ms=1.500 bytes_received=12 bytes_sent=34567 client=site "
                                         "peer=10.0.0.7:1234"));
}

TEST(ServerLog, ProbesAreQuietUnlessTheyFail) {
  const auto requests = [](int status) {
    return lines_of({}, [status] {
      for (const char* route : {"/health", "/ready", "/ping", "/metrics", "/v1/health"}) {
        Request request = request_of(route);
        request.route = route;
        RequestRecord record = ok();
        record.status = status;
        log_request(request, record);
      }
    });
  };
  EXPECT_THAT(requests(200), ElementsAre(HasSubstr("/v1/health")));
  EXPECT_THAT(requests(503), SizeIs(5));
}

// Whatever clients send as a path, a line is a line, and JSON is JSON.
TEST(ServerLog, AnyBytesMakeOneValidLineOfBoundedLength) {
  std::mt19937 random(5);
  std::vector<std::string> paths = {std::string(10'000, 'x'),
                                    std::string(10'000, '\xc3'),
                                    std::string(5000, '"'),
                                    "/\n{\"level\":\"error\"}",
                                    std::string("/\0/", 3),
                                    "/a b\" id=forged\r\n",
                                    "/\xed\xa0\x80\xf8\x88\x80\x80\x80",
                                    "\x7f\x1b[31m",
                                    ""};
  for (int i = 0; i < 300; ++i) {
    std::string path;
    for (size_t length = random() % 700; length > 0; --length) path += static_cast<char>(random() % 256);
    paths.push_back(std::move(path));
  }
  // Characters of all lengths across the place where it is cut.
  for (size_t before = 250; before < 260; ++before)
    for (const char* c : {"\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x90\x9f"})
      paths.push_back(std::string(before, 'x') + c + c + c);
  const auto write = [&] {
    for (const std::string& path : paths) {
      Request request = request_of(path);
      request.method = path.substr(0, 300);
      request.peer = request.id = request.client = request.route = path;
      log_request(request, ok());
    }
  };
  for (const char* format : {"json", "text"}) {
    const auto lines = lines_of({.log_format = format}, write);
    ASSERT_THAT(lines, SizeIs(paths.size())) << format;
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_LT(lines[i].size(), 12'000u);
      EXPECT_TRUE(is_utf8(lines[i]));
      if (std::string_view(format) == "text") {
        EXPECT_EQ(printable(lines[i], 1 << 20), lines[i]);
        continue;
      }
      const std::string path = object_of(lines[i]).at("path").as_string();
      if (!is_utf8(paths[i])) continue;
      EXPECT_EQ(path.find("\xef\xbf\xbd"), std::string::npos) << "cut within a character";
      EXPECT_EQ(path.substr(0, 253), paths[i].substr(0, 253));
      EXPECT_EQ(path == paths[i], paths[i].size() <= 256);
    }
  }
}

TEST(ServerLog, LinesOfManyThreadsStayWhole) {
  constexpr int kThreads = 4, kEach = 500;
  const auto lines = lines_of({.log_format = "json"}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < kEach; ++i) {
          log(LogLevel::info, t, " ", i);
          log_request(request_of(std::string(200, 'x')), ok());
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
  ASSERT_THAT(lines, SizeIs(2 * kThreads * kEach));
  for (const std::string& line : lines) object_of(line);
}

// Of a log of so many lines, what comes out of a pipe that is read only when all have been written.
struct LateReading {
  std::string text;
  bool in_time;  // the log, which waits a second for a reader that stands still, need not have given up
};

LateReading read_late(int lines) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::FILE* const out = fdopen(ends[1], "w");
  std::optional<ServerLog> log_of_server(std::in_place, ServerConfig{.log_format = "json"}, out);
  for (int i = 0; i < lines; ++i) log(LogLevel::info, std::string(100, 'x'), i);  // returns
  LateReading reading;
  std::thread reader([&] {
    char block[1 << 16];
    for (ssize_t got; (got = read(ends[0], block, sizeof block)) > 0;)
      reading.text.append(block, static_cast<size_t>(got));
  });
  const int64_t began_us = now_us();
  log_of_server.reset();
  reading.in_time = now_us() - began_us < 1'000'000;
  std::fclose(out);
  reader.join();
  close(ends[0]);
  return reading;
}

// A pipe that nobody reads: the log must lose lines and say so, and hold nobody up.
TEST(ServerLog, ASlowReaderOfTheLogBlocksNobody) {
  constexpr int kLines = 30'000;
  LateReading reading = read_late(kLines);
  for (int again = 0; again < 4 && !reading.in_time; ++again) reading = read_late(kLines);
  const std::string& text = reading.text;
  const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  EXPECT_LT(lines, kLines);
  EXPECT_GT(lines, 8000);
  EXPECT_THAT(text, HasSubstr("lines of this log were lost"));
  EXPECT_THAT(text, HasSubstr("x29999\""));  // the newest are kept
}

// A full pipe whose other end is open and never read.
TEST(ServerLog, AStoppedReaderDoesNotBlockShutdown) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::FILE* const out = fdopen(ends[1], "w");
  std::atomic<uint64_t> lost{0};
  std::future<void> ended = std::async(std::launch::async, [&] {
    const ServerLog log_of_server({}, out);
    for (int i = 0; i < 30'000; ++i) log(LogLevel::info, std::string(100, 'x'), i);
    lost = lost_log_lines();
  });
  const bool in_time = ended.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  EXPECT_TRUE(in_time) << "the log waits for its reader";
  EXPECT_GT(lost, 20'000u);
  EXPECT_EQ(lost_log_lines(), 0u);  // of no log
  close(ends[0]);                   // ends a log that waits
  ended.wait();
  std::fclose(out);
}

// Its descriptor refuses to be written, as one that was closed when the program began.
TEST(ServerLog, LinesThatCannotBeWrittenAreCountedAsLost) {
  std::FILE* const out = std::fopen("/dev/null", "r");
  uint64_t lost = 0;
  {
    const ServerLog log_of_server({}, out);
    log(LogLevel::info, "x");
    for (int i = 0; i < 1000 && lost == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      lost = lost_log_lines();
    }
  }
  EXPECT_EQ(lost, 1u);
  std::fclose(out);
}

TEST(ServerLog, WithoutAServerLogNothingIsWritten) {
  log_request(request_of("/"), ok());
  lines_of({}, [] {});
  log_request(request_of("/"), ok());
}

TEST(ServerLog, AFailureNamesItsRequest) {
  const auto lines = lines_of({.log_format = "json", .log_level = "error"},
                              [] { log_failure(request_of("/v1/tts"), "no disk"); });
  ASSERT_THAT(lines, SizeIs(1));
  const Json line = object_of(lines[0]);
  EXPECT_EQ(line.at("level").as_string(), "error");
  EXPECT_EQ(line.at("message").as_string(), "no disk");
  EXPECT_EQ(line.at("id").as_string(), "req-1");
  EXPECT_EQ(line.at("route").as_string(), "/v1/tts");
}

// A server within another program, which takes the remarks itself.
TEST(ServerLog, WithoutAServerLogAFailureGoesToTheLogSink) {
  std::vector<std::string> remarks;
  set_log_sink([&](LogLevel level, std::string_view message) {
    EXPECT_EQ(level, LogLevel::error);
    remarks.emplace_back(message);
  });
  log_failure(request_of("/v1/tts"), "no disk");
  set_log_sink({});
  EXPECT_THAT(remarks, ElementsAre("request req-1 /v1/tts: no disk"));
}

TEST(LogLine, AmbiguousValuesAreQuoted) {
  EXPECT_EQ(log_word("/v1/tts"), "/v1/tts");
  EXPECT_EQ(log_word("a b"), "\"a b\"");
  EXPECT_EQ(log_word("a=b"), "\"a=b\"");
  EXPECT_EQ(log_word(""), "\"\"");
  EXPECT_EQ(
      log_line(LogFormat::text, "m", {{"a", ""}, {"b", "x"}, {"c", true}, {"d", uint64_t{1}}, {"e", 0.25}}),
      "m b=x c=true d=1 e=0.250");
  EXPECT_EQ(log_line(LogFormat::json, "m", {{"a", ""}, {"d", UINT64_MAX}}),
            "\"message\":\"m\",\"a\":\"\",\"d\":18446744073709551615");
}

}  // namespace
}  // namespace shoal::server
