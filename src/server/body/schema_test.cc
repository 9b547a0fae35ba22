#include "server/body/schema.h"

#include <cmath>

#include "server/body/body_testing.h"

namespace shoal::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Clip {
  std::string audio, text = "?";
};

struct Order {
  std::string text;
  int count = 3;
  std::optional<int64_t> seed;
  uint64_t size = 0;
  int16_t small = 0;
  double top_p = 0.8;
  float gain = 1;
  std::optional<double> temperature;
  bool streaming = false;
  std::optional<bool> normalize;
  std::string format = "wav";
  std::optional<std::string> voice;
  std::string audio;
  std::vector<Clip> references;
  std::vector<std::string> unused;
};

const Schema<Clip>& clips() {
  static const Schema<Clip> schema = {bytes("audio", &Clip::audio, "The clip.").required(),
                                      text("text", &Clip::text, "Its words.")};
  return schema;
}

const Schema<Order>& orders() {
  static const Schema<Order> schema = {
      text("text", &Order::text, "What to say.").required(),
      integer("count", &Order::count, {1, 10}, "How often.").otherwise("3"),
      integer("seed", &Order::seed, {}, "The seed."),
      integer("size", &Order::size, {}, "Bytes."),
      integer("small", &Order::small, {}, "Few."),
      number("top_p", &Order::top_p, {0.1, 1}, "Nucleus."),
      number("gain", &Order::gain, {}, "Loudness."),
      number("temperature", &Order::temperature, {.low = 0}, "Heat."),
      boolean("streaming", &Order::streaming, "In pieces."),
      boolean("normalize", &Order::normalize, "Of text."),
      choice("format", &Order::format, {"wav", "pcm"}, "The container."),
      text("voice", &Order::voice, "Whose."),
      bytes("audio", &Order::audio, "A clip."),
      list("references", &Order::references, clips(), 2, "Clips."),
      refused<Order>("instructions", "string", "instructions are not followed by these models"),
      refused<Order>("speed", "number", "only speed 1 is spoken", Value{1.0}),
      refused<Order>("logprobs", "boolean", "there are no logprobs", Value{true}),
      unused<Order>("emotion", "string", "there are no emotions")};
  return schema;
}

Order read(std::string_view json) { return orders().read(read_json(json)); }

// Of {"text": "x", NAME: VALUE}.
BodyError error_with(std::string_view name, Value value) {
  const Value body{Value::Object{{"text", text_value("x")}, {std::string(name), std::move(value)}}};
  SCOPED_TRACE(write_json(body));
  return error_of([&] { orders().read(body); });
}

Order with(std::string_view name, Value value) {
  return orders().read(
      Value{Value::Object{{"text", text_value("x")}, {std::string(name), std::move(value)}}});
}

TEST(Schema, ReadsEveryKindOfField) {
  const Order order =
      read(R"({"text": "Hello", "count": 10, "seed": -9223372036854775808, "size": 9223372036854775807,
      "small": -32768, "top_p": 1, "gain": -0.5, "temperature": 1e308, "streaming": true, "normalize": false,
      "format": "pcm", "voice": "", "audio": "Zm9v", "references": [{"audio": "", "text": "a"}, {"audio": "Zg"}]})");
  EXPECT_EQ(order.text, "Hello");
  EXPECT_EQ(order.count, 10);
  EXPECT_EQ(order.seed, INT64_MIN);
  EXPECT_EQ(order.size, static_cast<uint64_t>(INT64_MAX));
  EXPECT_EQ(order.small, -32768);
  EXPECT_EQ(order.top_p, 1.0);
  EXPECT_EQ(order.gain, -0.5f);
  EXPECT_EQ(order.temperature, 1e308);
  EXPECT_TRUE(order.streaming);
  EXPECT_EQ(order.normalize, false);
  EXPECT_EQ(order.format, "pcm");
  EXPECT_EQ(order.voice, "");
  EXPECT_EQ(order.audio, "foo");
  ASSERT_EQ(order.references.size(), 2u);
  EXPECT_EQ(order.references[0].text, "a");
  EXPECT_EQ(order.references[1].audio, "f");
  EXPECT_EQ(order.references[1].text, "?");
}

TEST(Schema, AbsentAndNullFieldsKeepTheirDefaults) {
  for (const char* json :
       {R"({"text": "x"})",
        R"({"text": "x", "count": null, "seed": null, "top_p": null, "format": null, "audio": null,
                               "references": null, "streaming": null, "instructions": null})"}) {
    const Order order = read(json);
    EXPECT_EQ(order.count, 3);
    EXPECT_EQ(order.seed, std::nullopt);
    EXPECT_EQ(order.top_p, 0.8);
    EXPECT_EQ(order.format, "wav");
    EXPECT_TRUE(order.references.empty());
  }
  Order other;
  other.count = 7;
  other.voice = "fox";
  other = orders().read_onto(other, read_json(R"({"text": "x", "voice": null})"));
  EXPECT_EQ(other.count, 7);
  EXPECT_EQ(other.voice, "fox");
}

TEST(Schema, AcceptsNumbersAndBooleansAsTexts) {
  EXPECT_EQ(with("count", text_value("7")).count, 7);
  EXPECT_EQ(with("count", text_value("7.0")).count, 7);
  EXPECT_EQ(with("count", Value{7.0}).count, 7);
  EXPECT_EQ(with("seed", text_value("9223372036854775807")).seed, INT64_MAX);
  EXPECT_EQ(with("seed", Value{-0x1p63}).seed, INT64_MIN);
  EXPECT_EQ(with("top_p", text_value("0.25")).top_p, 0.25);
  for (const char* yes : {"true", "True", "1", "on", "YES"})
    EXPECT_TRUE(with("streaming", text_value(yes)).streaming);
  for (const char* no : {"false", "FALSE", "0", "off", "no"})
    EXPECT_EQ(with("normalize", text_value(no)).normalize, false);
  EXPECT_EQ(with("audio", bytes_value("\xff")).audio, "\xff");
  EXPECT_EQ(with("audio", text_value("data:audio/wav;base64,Zm9v")).audio, "foo");
}

TEST(Schema, AcceptsANodeBufferAsBytes) {
  const auto buffer = [](const std::string& data) {
    return with("audio", read_json(R"({"type": "Buffer", "data": )" + data + "}")).audio;
  };
  EXPECT_EQ(buffer("[102, 111, 111]"), "foo");
  EXPECT_EQ(buffer("[0, 255]"), std::string("\0\xff", 2));
  EXPECT_EQ(buffer("[]"), "");
  for (const char* bad : {"[256]", "[-1]", "[0.5]", "[\"f\"]", "\"foo\"", "null"})
    EXPECT_THROW(buffer(bad), BodyError) << bad;
  EXPECT_EQ(error_with("audio", read_json(R"({"type": "Blob", "data": [1]})")).message(),
            "audio: expected bytes or base64 in a text, found an object");
}

TEST(Schema, RefusesHostileNumbersInEveryNumericField) {
  const std::vector<Value> never = {{false},
                                    text_value(""),
                                    text_value("nan"),
                                    text_value("inf"),
                                    text_value("1e309"),
                                    text_value("1 "),
                                    text_value("0x1"),
                                    text_value(" 1"),
                                    text_value("1,5"),
                                    bytes_value("1"),
                                    {Value::Array{}},
                                    {Value::Object{}},
                                    {std::nan("")},
                                    {HUGE_VAL},
                                    text_value("-NaN"),
                                    text_value("9223372036854775808x"),
                                    text_value("+1")};
  for (const char* name : {"count", "seed", "size", "small", "top_p", "gain", "temperature"})
    for (const Value& value : never) {
      if (value.as<double>()) {  // no reader makes one, and JSON cannot show it
        const Value body{Value::Object{{"text", text_value("x")}, {name, value}}};
        EXPECT_EQ(error_of([&] { orders().read(body); }).where(), name);
      } else {
        EXPECT_EQ(error_with(name, value).where(), name);
      }
    }
  for (const char* name : {"count", "seed", "size", "small"})
    for (const Value& value : {Value{1.5}, Value{1e308}, Value{-1e308}, Value{0x1p63}, text_value("1e308"),
                               text_value("9223372036854775808"), text_value("18446744073709551616")})
      EXPECT_EQ(error_with(name, value).where(), name);
  for (const char* name : {"count", "size", "top_p", "temperature"})
    for (const Value& value : {integer_value(-1), integer_value(INT64_MIN), Value{-1.0}, text_value("-1")})
      EXPECT_EQ(error_with(name, value).where(), name);
  for (const char* name : {"count", "small", "top_p"})
    for (const Value& value : {integer_value(INT64_MAX), integer_value(1 << 20), text_value("1000000")})
      EXPECT_EQ(error_with(name, value).where(), name);
  EXPECT_EQ(error_with("gain", {1e308}).where(), "gain");
  EXPECT_EQ(error_with("top_p", {0.09999}).where(), "top_p");
}

// The same from the wire, where some do not reach the schema.
TEST(Schema, NamesTheFieldOfHostileNumbersInBodies) {
  for (const char* name : {"count", "seed", "size", "small", "top_p", "gain", "temperature"})
    for (const char* number :
         {"NaN", "-Infinity", "1e309", "-1e309", "99999999999999999999", "9223372036854775808"})
      EXPECT_EQ(error_of([&] { read(concat(R"({"text":"x",")", name, "\":", number, "}")); }).where(), name)
          << number;
}

TEST(Schema, ErrorsSayWhatWasExpectedAndFound) {
  EXPECT_EQ(error_with("count", integer_value(11)).message(),
            "count: expected an integer from 1 to 10, found 11");
  EXPECT_EQ(error_with("count", {1.5}).message(), "count: expected an integer from 1 to 10, found 1.5");
  EXPECT_EQ(error_with("seed", {1e308}).message(), "seed: expected an integer, found 1e+308");
  EXPECT_EQ(error_with("small", integer_value(40000)).message(),
            "small: expected an integer from -32768 to 32767, found 40000");
  EXPECT_EQ(error_with("temperature", integer_value(-1)).message(),
            "temperature: expected a number of at least 0, found -1");
  EXPECT_EQ(error_with("top_p", text_value("high\n")).message(),
            "top_p: expected a number from 0.1 to 1, found the text \"high?\"");
  EXPECT_EQ(error_with("streaming", integer_value(1)).message(),
            "streaming: expected true or false, found 1");
  EXPECT_EQ(error_with("streaming", text_value("maybe")).message(),
            "streaming: expected true or false, found the text \"maybe\"");
  EXPECT_EQ(error_with("format", text_value("ogg")).message(),
            "format: expected one of \"wav\", \"pcm\", found the text \"ogg\"");
  EXPECT_EQ(error_with("format", integer_value(1)).message(),
            "format: expected one of \"wav\", \"pcm\", found 1");
  EXPECT_EQ(error_with("voice", bytes_value("abc")).message(), "voice: expected a text, found 3 bytes");
  EXPECT_EQ(error_with("voice", {true}).message(), "voice: expected a text, found true");
  EXPECT_EQ(error_with("audio", text_value("/etc/passwd!")).message(),
            "audio: expected base64, found the text \"/etc/passwd!\"");
  EXPECT_EQ(error_with("audio", integer_value(1)).message(),
            "audio: expected bytes or base64 in a text, found 1");
  EXPECT_EQ(error_with("references", text_value("x")).message(),
            "references: expected an array, found the text \"x\"");
  EXPECT_EQ(error_with("references", {Value::Array(3)}).message(),
            "references: expected at most 2 items, found 3");
}

TEST(Schema, ErrorsNameItemsByTheirPath) {
  const auto in_second = [](std::string_view item) {
    return error_of([&] { read(concat(R"({"text":"x","references":[{"audio":"Zg"},)", item, "]}")); });
  };
  EXPECT_EQ(in_second("{}").message(), "references[1].audio: is required");
  EXPECT_EQ(in_second(R"({"audio":null})").where(), "references[1].audio");
  EXPECT_EQ(in_second(R"({"audio":7})").where(), "references[1].audio");
  EXPECT_EQ(in_second(R"({"audio":"","words":""})").where(), "references[1].words");
  EXPECT_EQ(in_second("null").message(), "references[1]: expected an object, found null");
  EXPECT_EQ(error_of([] { clips().read(Value{Value::Object{}}, "items[3]"); }).where(), "items[3].audio");
}

TEST(Schema, RefusesMissingRequiredFields) {
  EXPECT_EQ(error_of([] { read("{}"); }).message(), "text: is required");
  EXPECT_EQ(error_of([] { read(R"({"text":null})"); }).where(), "text");
  EXPECT_EQ(error_of([] { read("[]"); }).message(), "expected an object, found an array of 0");
  EXPECT_EQ(error_of([] { read("null"); }).where(), "");
}

TEST(Schema, SuggestsTheNearestName) {
  EXPECT_EQ(error_with("topp", integer_value(1)).message(),
            "topp: there is no such field; the nearest is \"top_p\"");
  EXPECT_EQ(error_with("Seed", {}).message(), "Seed: there is no such field; the nearest is \"seed\"");
  EXPECT_EQ(error_with("refrences", {}).where(), "refrences");
  EXPECT_THAT(error_with(std::string(1 << 20, 'x'), {}).message(), HasSubstr("there is no such field"));
  error_with("\n\x1b[31m", {});
  error_with("", {});
}

TEST(Schema, RefusesUnsupportedFields) {
  for (const Value& value : {Value{}, Value{false}, text_value("")}) {
    EXPECT_NO_THROW(with("instructions", value));
    EXPECT_NO_THROW(with("speed", value));
  }
  for (const Value& value : {Value{1.0}, integer_value(1), text_value("1"), text_value("1.0")})
    EXPECT_NO_THROW(with("speed", value));
  EXPECT_NO_THROW(with("logprobs", {true}));
  EXPECT_NO_THROW(with("logprobs", text_value("true")));

  const BodyError error = error_with("instructions", text_value("cheerfully"));
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_EQ(error.where(), "instructions");
  EXPECT_EQ(error.message(), "instructions: instructions are not followed by these models");
  for (const Value& value : {Value{1.5}, integer_value(0), text_value("2"), text_value("x"), Value{true},
                             Value{Value::Array{}}, bytes_value("")})
    EXPECT_EQ(error_with("speed", value).code(), ErrorCode::unsupported);
  EXPECT_EQ(error_with("instructions", {true}).code(), ErrorCode::unsupported);
}

TEST(Schema, RecordsFieldsWithoutEffect) {
  for (const Value& value : {Value{}, Value{false}, text_value("")})
    EXPECT_THAT(with("emotion", value).unused, testing::IsEmpty());
  EXPECT_THAT(with("emotion", text_value("happy")).unused, ElementsAre("emotion: there are no emotions"));
}

TEST(Schema, DescribesItsFields) {
  const std::vector<FieldDoc> docs = orders().docs();
  ASSERT_EQ(docs.size(), 18u);
  EXPECT_EQ(docs[0].name, "text");
  EXPECT_EQ(docs[0].type, "string");
  EXPECT_EQ(docs[0].help, "What to say.");
  EXPECT_TRUE(docs[0].required);
  EXPECT_EQ(docs[1].type, "integer");
  EXPECT_EQ(docs[1].minimum, 1);
  EXPECT_EQ(docs[1].maximum, 10);
  EXPECT_EQ(docs[1].default_value, "3");
  EXPECT_FALSE(docs[1].required);
  EXPECT_EQ(docs[2].minimum, std::nullopt);
  EXPECT_EQ(docs[7].minimum, 0);
  EXPECT_EQ(docs[7].maximum, std::nullopt);
  EXPECT_EQ(docs[8].type, "boolean");
  EXPECT_THAT(docs[10].one_of, ElementsAre("wav", "pcm"));
  EXPECT_EQ(docs[12].format, "byte");
  EXPECT_EQ(docs[13].type, "array");
  EXPECT_EQ(docs[13].max_length, 2);
  ASSERT_EQ(docs[13].items.size(), 2u);
  EXPECT_TRUE(docs[13].items[0].required);
  EXPECT_EQ(docs[15].type, "number");
  EXPECT_EQ(docs[17].help, "has no effect: there are no emotions");
}

}  // namespace
}  // namespace shoal::server
