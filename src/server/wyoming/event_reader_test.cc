#include "server/wyoming/event_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "base/error.h"
#include "server/wyoming/requests.h"

namespace shoal::server {
namespace {

using testing::HasSubstr;

// "TYPE JSON" of each event, "!MESSAGE" behind it if it is wrong, and "lost: MESSAGE" where reading ends.
std::vector<std::string> read_all(std::string_view bytes, const std::vector<size_t>& cuts = {},
                                  WyomingLimits limits = {}) {
  WyomingReader reader(limits);
  std::vector<std::string> events;
  const auto take = [&](std::string_view piece) {
    reader.add(piece);
    while (const auto event = reader.next())
      events.push_back(concat(event->type, " ", write_json(event->data),
                              event->wrong ? concat(" !", event->wrong->message()) : std::string()));
  };
  try {
    size_t at = 0;
    for (const size_t cut : cuts) {
      take(bytes.substr(at, cut - at));
      at = cut;
    }
    take(bytes.substr(at));
  } catch (const Error& error) {
    events.push_back(concat("lost: ", error.message()));
  }
  return events;
}

TEST(WyomingReader, ReadsDataInTheLineAndBehindIt) {
  const std::string in_line = R"({"type": "synthesize", "data": {"text": "Hi."}})"
                              "\n";
  EXPECT_EQ(read_all(in_line), (std::vector<std::string>{R"(synthesize {"text":"Hi."})"}));
  const std::string behind = R"({"type":"synthesize","version":"1.8.0","data_length":14})"
                             "\n"
                             R"({"text":"Hi."})";
  EXPECT_EQ(read_all(behind), (std::vector<std::string>{R"(synthesize {"text":"Hi."})"}));
  const std::string both = R"({"type":"a","data":{"text":"old","more":1},"data_length":28})"
                           "\r\n"
                           R"({"text":"new","voice":null })";
  EXPECT_EQ(read_all(both), (std::vector<std::string>{R"(a {"text":"new","more":1,"voice":null})"}));
}

TEST(WyomingReader, DropsPayloads) {
  const std::string bytes = R"({"type":"audio-chunk","data_length":2,"payload_length":5})"
                            "\n{}" +
                            std::string("\n\0{\xff\n", 5) +
                            R"({"type":"ping"})"
                            "\n";
  EXPECT_EQ(read_all(bytes), (std::vector<std::string>{"audio-chunk {}", "ping {}"}));
}

TEST(WyomingReader, AnEventThatEndsWhereItSaysIsWrongByItself) {
  const auto one = [](const std::string& bytes) {
    const auto events = read_all(bytes + R"({"type":"ping"})"
                                         "\n");
    EXPECT_EQ(events.size(), 2u) << bytes;
    EXPECT_EQ(events.back(), "ping {}") << bytes;
    return events.front();
  };
  EXPECT_THAT(one("{}\n"), HasSubstr("type: expected"));
  EXPECT_THAT(one(R"({"type":3})"
                  "\n"),
              HasSubstr("type: expected"));
  EXPECT_THAT(one(R"({"type":"a","data":[1]})"
                  "\n"),
              HasSubstr("data: expected an object"));
  EXPECT_THAT(one(R"({"type":"a","data_length":3})"
                  "\n[1]"),
              HasSubstr("data: expected an object"));
  EXPECT_THAT(one(R"({"type":"a","data_length":3})"
                  "\n{\"a"),
              HasSubstr("!data: "));
}

TEST(WyomingReader, LosesItsWayWhereNoEventEnds) {
  for (const char* bytes : {"\n", "hello\n", "[]\n", "{\"type\":\"a\"\n", "GET / HTTP/1.1\r\n",
                            R"({"type":"a","data_length":-1})"
                            "\n",
                            R"({"type":"a","payload_length":"9"})"
                            "\n",
                            R"({"type":"a","data_length":1.5})"
                            "\n",
                            "{\"type\":\"\xff\"}\n"}) {
    const auto events = read_all(concat(bytes, R"({"type":"ping"})", "\n"));
    ASSERT_EQ(events.size(), 1u) << bytes;
    EXPECT_THAT(events[0], testing::StartsWith("lost: ")) << bytes;
  }
}

TEST(WyomingReader, LimitsAreRefusedBeforeTheirBytesCome) {
  const WyomingLimits limits{.line_bytes = 40, .data_bytes = 10, .payload_bytes = 20};
  EXPECT_THAT(read_all(std::string(41, 'x'), {}, limits).at(0), HasSubstr("at most 40 bytes"));
  EXPECT_EQ(read_all(std::string(40, 'x'), {}, limits).size(), 0u);
  EXPECT_THAT(read_all("{\"type\":\"a\",\"data_length\":11}\n", {}, limits).at(0), HasSubstr("at most 10"));
  EXPECT_THAT(read_all("{\"type\":\"a\",\"payload_length\":21}\n", {}, limits).at(0),
              HasSubstr("at most 20"));
  EXPECT_THAT(read_all("{\"type\":\"a\",\"data_length\":9223372036854775807}\n").at(0), HasSubstr("at most"));
}

TEST(WyomingReader, EventsDoNotDependOnHowBytesAreCut) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    std::vector<std::string> wanted;
    for (int i = 0; i < 4; ++i) {
      const Value data{Value::Object{{"text", {std::string(random() % 50, 'a')}}, {"n", {int64_t{i}}}}};
      bytes += wyoming_event("event", data, std::string(random() % 30, '\n'));
      wanted.push_back(concat("event ", write_json(data)));
    }
    std::vector<size_t> cuts;
    for (uint64_t n = random() % 12; n > 0; --n) cuts.push_back(random() % bytes.size());
    std::ranges::sort(cuts);
    ASSERT_EQ(read_all(bytes, cuts), wanted) << round;
  }
}

TEST(WyomingRequests, FieldsAreHonouredOrRefusedByName) {
  const auto refusal = [](const std::string& json) {
    try {
      read_synthesize(read_json(json));
    } catch (const BodyError& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal(R"({"text":"Hi.","voice":{"name":"a","speaker":null},"context":{"x":[1]}})"), "accepted");
  EXPECT_EQ(refusal(R"({"text":"","voice":null,"context":null})"), "accepted");
  EXPECT_THAT(refusal("{}"), HasSubstr("text"));
  EXPECT_THAT(refusal(R"({"text":"Hi.","voice":{"nmae":"a"}})"), HasSubstr("voice.nmae"));
  EXPECT_THAT(refusal(R"({"text":"Hi.","voice":"a"})"), HasSubstr("voice"));
  EXPECT_THAT(refusal(R"({"text":"Hi.","context":1})"), HasSubstr("context"));
  EXPECT_EQ(read_synthesize_start(read_json(R"({"voice":{"language":"de"}})")).voice.language, "de");
  EXPECT_EQ(read_ping(read_json(R"({"text":null})")), "");
  EXPECT_EQ(read_synthesize_chunk(read_json(R"({"text":" and"})")), " and");
  EXPECT_THROW(read_synthesize_chunk(read_json("{}")), BodyError);
}

}  // namespace
}  // namespace shoal::server
