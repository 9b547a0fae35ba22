#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "server/body/body_testing.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

using testing::HasSubstr;

BodyError json_error(std::string_view body) {
  SCOPED_TRACE(printable(body, 60));
  return error_of([&] { read_json(body); });
}

TEST(ReadJson, ReadsTheExampleOfItsSpecification) {
  // RFC 8259, section 13.
  const Value value = read_json(R"({
      "Image": {
          "Width":  800,
          "Height": 600,
          "Title":  "View from 15th Floor",
          "Thumbnail": {
              "Url":    "http://www.example.com/image/481989943",
              "Height": 125,
              "Width":  100
          },
          "Animated" : false,
          "IDs": [116, 943, 234, 38793]
        }
    })");
  const Value* image = value.find("Image");
  ASSERT_TRUE(image);
  EXPECT_EQ(*image->find("Width"), integer_value(800));
  EXPECT_EQ(*image->find("Title"), text_value("View from 15th Floor"));
  EXPECT_EQ(*image->find("Thumbnail")->find("Height"), integer_value(125));
  EXPECT_EQ(*image->find("Animated"), Value{false});
  EXPECT_EQ(*image->find("IDs"), (Value{Value::Array{integer_value(116), integer_value(943),
                                                     integer_value(234), integer_value(38793)}}));
  EXPECT_EQ(image->find("width"), nullptr);
}

TEST(ReadJson, ReadsScalars) {
  EXPECT_EQ(read_json(" null\n"), Value{});
  EXPECT_EQ(read_json("true"), Value{true});
  EXPECT_EQ(read_json("-0"), integer_value(0));
  EXPECT_EQ(read_json("9223372036854775807"), integer_value(INT64_MAX));
  EXPECT_EQ(read_json("-9223372036854775808"), integer_value(INT64_MIN));
  EXPECT_EQ(read_json("3.0"), Value{3.0});
  EXPECT_EQ(read_json("1E2"), Value{100.0});
  EXPECT_EQ(read_json("1e308"), Value{1e308});
  EXPECT_EQ(read_json("-1.5e-3"), Value{-0.0015});
  EXPECT_TRUE(std::signbit(*read_json("-0.0").as<double>()));
  EXPECT_EQ(read_json("[]"), Value{Value::Array{}});
  EXPECT_EQ(read_json("{ }"), Value{Value::Object{}});
}

TEST(ReadJson, ReadsTexts) {
  EXPECT_EQ(read_json(R"("a\"\\\/\b\f\n\r\tz")"), text_value("a\"\\/\b\f\n\r\tz"));
  EXPECT_EQ(read_json(R"("\u0041\u00e9\u4E2D\ud83d\udc1f")"),
            text_value("A\xc3\xa9\xe4\xb8\xad\xf0\x9f\x90\x9f"));
  EXPECT_EQ(read_json(R"("\u0000")"), text_value(std::string(1, '\0')));
  EXPECT_EQ(read_json("\"\x7f\xf4\x8f\xbf\xbf\""), text_value("\x7f\xf4\x8f\xbf\xbf"));
  // Every position of what ends a run of plain bytes, against the steps of eight.
  for (size_t length = 0; length < 40; ++length) {
    const std::string plain(length, 'x');
    EXPECT_EQ(read_json("\"" + plain + "\\n" + plain + "\""), text_value(plain + "\n" + plain));
    EXPECT_EQ(read_json("\"" + plain + "\xc3\xa9\""), text_value(plain + "\xc3\xa9"));
    json_error("\"" + plain + "\x1f\"");
    json_error("\"" + plain + "\x80\"");
  }
}

TEST(ReadJson, SkipsAByteOrderMark) {
  EXPECT_EQ(read_json("\xEF\xBB\xBF {\"text\": \"\xEF\xBB\xBFx\"}"),
            read_json("{\"text\": \"\xEF\xBB\xBFx\"}"));
  for (const char* bad :
       {"\xEF\xBB\xBF", "\xEF\xBB\xBF\xEF\xBB\xBF{}", "{}\xEF\xBB\xBF", "\xEF\xBB{}", " \xEF\xBB\xBF{}"})
    EXPECT_THROW(read_json(bad), BodyError) << bad;
}

TEST(ReadJson, RefusesInvalidJson) {
  for (const char* body : {"",          " ",         "nul",       "nulll",       "True",        "NaN",
                           "Infinity",  "-Infinity", "+1",        "01",          "-",           "1.",
                           ".5",        "1e",        "1e+",       "0x10",        "1_000",       "'a'",
                           "\"a",       "\"\\x\"",   "\"\\u12\"", "\"\\u12g4\"", "\"\\u+123\"", "[",
                           "[1",        "[1,",       "[1,]",      "[,1]",        "[1 2]",       "]",
                           "{",         "{\"a\"",    "{\"a\":",   "{\"a\":1",    "{\"a\":1,}",  "{a:1}",
                           "{\"a\" 1}", "{1:1}",     "{\"a\":1]", "[1}",         "1 2",         "{} {}",
                           "[1],",      "// x\n1",   "\"\t\"",    "\v1",         "\f1"})
    EXPECT_THAT(json_error(body).message(), HasSubstr("not JSON")) << body;
  json_error(std::string_view("1\0", 2));
  json_error(std::string_view("\0", 1));
  json_error(std::string_view("\"\0\"", 3));
}

TEST(ReadJson, ErrorsGiveThePosition) {
  EXPECT_EQ(json_error(R"({"a": [1, 2 3]})").message(),
            R"(a: not JSON: expected "," or "]" at byte 12, found "3")");
  EXPECT_EQ(json_error(R"({"seed": NaN})").where(), "seed");
  EXPECT_EQ(json_error(R"({"seed": -Infinity})").where(), "seed");
  EXPECT_EQ(json_error(R"({"a":{"b":[1,{"c": nope}]}})").where(), "a.b[1].c");
  EXPECT_EQ(json_error("[1").message(), R"(not JSON: expected "," or "]", found the end)");
}

TEST(ReadJson, RefusesNumbersThatDoNotFit) {
  for (const char* number : {"9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e309",
                             "-1e309", "1e99999999999999999999"}) {
    const BodyError error = json_error(concat(R"({"items": [{}, {"seed": )", number, "}]}"));
    EXPECT_EQ(error.where(), "items[1].seed");
    EXPECT_THAT(error.message(), HasSubstr(number));
  }
  EXPECT_EQ(json_error(std::string(100'000, '9')).code(), ErrorCode::invalid_argument);
}

TEST(ReadJson, RefusesInvalidUtf8) {
  // Alone, cut off, overlong, surrogate, beyond U+10FFFF.
  for (const char* bad : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_EQ(json_error(concat(R"({"text": ")", bad, R"("})")).where(), "text");
    json_error(concat(R"({")", bad, R"(": 1})"));
    json_error(bad);
  }
  for (const char* lone : {R"("\ud83d")", R"("\udc1f")", R"("\ud83dx")", R"("\ud83d\n")", R"("\ud83d\ud83d")",
                           R"("\udc1f\ud83d")", R"("\ud83d\u0041")"})
    json_error(lone);
}

TEST(ReadJson, RefusesDuplicateNames) {
  EXPECT_EQ(json_error(R"({"a":1,"b":2,"a":3})").where(), "a");
  EXPECT_EQ(json_error(R"({"x":[{"a":1,"\u0061":3}]})").where(), "x[0].a");
  EXPECT_NO_THROW(read_json(R"({"a":{"a":1},"A":{"a":2},"":0})"));
}

std::string nested(int levels, std::string_view open, std::string_view close) {
  std::string body;
  for (int i = 0; i < levels; ++i) body += open;
  for (int i = 0; i < levels; ++i) body += close;
  return body;
}

TEST(ReadJson, LimitsTheDepth) {
  EXPECT_NO_THROW(read_json(nested(kMaxDepth, "[", "]")));
  EXPECT_THAT(json_error(nested(kMaxDepth + 1, "[", "]")).message(), HasSubstr("32 levels"));
  EXPECT_NO_THROW(read_json("{\"a\":" + nested(kMaxDepth - 1, "[", "]") + "}"));
  json_error("{\"a\":" + nested(kMaxDepth, "[", "]") + "}");
  json_error(nested(1'000'000, "[", "]"));
  json_error(nested(1'000'000, "[", ""));
  json_error(nested(1'000'000, "{\"a\":", ""));
}

TEST(ReadJson, LimitsTheNumberOfValues) {
  const auto zeros = [](int64_t count) {
    std::string body = "[0";
    for (int64_t i = 1; i < count; ++i) body += ",0";
    return body + "]";
  };
  EXPECT_EQ(read_json(zeros(kMaxValues - 1)).as<Value::Array>()->size(), static_cast<size_t>(kMaxValues - 1));
  EXPECT_THAT(json_error(zeros(kMaxValues)).message(), HasSubstr("1048576 values"));
}

Value of(const nlohmann::json& json) {
  using Kind = nlohmann::json::value_t;
  switch (json.type()) {
    case Kind::boolean:
      return {json.get<bool>()};
    case Kind::number_integer:
    case Kind::number_unsigned:
      return {json.get<int64_t>()};
    case Kind::number_float:
      return {json.get<double>()};
    case Kind::string:
      return {json.get<std::string>()};
    case Kind::array: {
      Value::Array array;
      for (const auto& item : json) array.push_back(of(item));
      return {std::move(array)};
    }
    case Kind::object: {
      Value::Object object;
      for (const auto& [name, member] : json.items()) object.emplace_back(name, of(member));
      return {std::move(object)};
    }
    default:
      return {};
  }
}

// Another reader says the same of documents in which a few bytes were changed. Names come sorted from it, so
// there is one object with sorted names in them; what only we refuse (limits, names twice) cannot arise.
TEST(ReadJson, AgreesWithAnotherReader) {
  const std::string sound = R"({"a":[1,-2.5e3,"x\"\ud83d\udc1f\u00e9 )"
                            "\xc3\xa9\xf0\x9f\x90\x9f"
                            R"(",true],"b":null,"c":[[],[0.1,1E-2]]})";
  constexpr std::string_view kBytes = "{}[]\",:\\ue0123456789.+-x \n\t\x80\xc3\xed";
  std::mt19937_64 random(5);
  int read = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string body = sound;
    for (uint64_t changes = 1 + random() % 2; changes > 0; --changes) {
      const size_t at = random() % body.size();
      const char byte = kBytes[random() % kBytes.size()];
      switch (random() % 3) {
        case 0:
          body[at] = byte;
          break;
        case 1:
          body.insert(at, 1, byte);
          break;
        default:
          body.erase(at, 1 + random() % 3);
      }
    }
    const nlohmann::json theirs = nlohmann::json::parse(body, nullptr, false);
    std::optional<Value> ours;
    try {
      ours = read_json(body);
    } catch (const BodyError& error) {
      if (error.message().find("found again") != std::string::npos ||
          error.message().find("holds") != std::string::npos)
        continue;
    }
    ASSERT_EQ(ours.has_value(), !theirs.is_discarded()) << body;
    if (!ours) continue;
    ++read;
    const auto* object = ours->as<Value::Object>();
    const bool sorted = !object || std::ranges::is_sorted(*object, {}, &Value::Object::value_type::first);
    if (sorted) {
      ASSERT_EQ(*ours, of(theirs)) << body;
    }
  }
  EXPECT_GT(read, 10'000);
}

TEST(WriteJson, WrittenValuesReadBackTheSame) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Value value = RandomTree(seed, false).make();
    const std::string json = write_json(value);
    ASSERT_EQ(read_json(json), value) << json;
    ASSERT_TRUE(nlohmann::json::accept(json)) << json;
  }
}

TEST(WriteJson, WritesEachKind) {
  const Value value{
      Value::Object{{"a", Value{Value::Array{Value{}, Value{true}, integer_value(-1), Value{3.0}}}},
                    {"b\n", text_value("\"\\\x01\x1f\xc3\xa9/")},
                    {"c", bytes_value("foob")},
                    {"d", Value{Value::Object{}}},
                    {"e", Value{Value::Array{}}}}};
  EXPECT_EQ(write_json(value), R"({"a":[null,true,-1,3.0],"b\n":"\"\\\u0001\u001f)"
                               "\xc3\xa9"
                               R"(/","c":"Zm9vYg==","d":{},"e":[]})");
  EXPECT_EQ(write_json(Value{1e300}), "1e+300");
  EXPECT_THROW(write_json(text_value("\xff")), Error);
  EXPECT_THROW(write_json(Value{std::nan("")}), Error);
}

}  // namespace
}  // namespace shoal::server
