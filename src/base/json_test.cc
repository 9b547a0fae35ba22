#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/heap_bytes_testing.h"

namespace shoal {
namespace {

ErrorCode code_of(const std::string& text) {
  try {
    Json::parse(text, "x.json");
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(Json, KeepsOrderKindsAndPaths) {
  const Json doc =
      Json::parse(R"({"b": {"deep": [1, 2.5, "x", null, true]}, "a": 9007199254740993, "f": 3.0})", "x.json");
  ASSERT_EQ(doc.as_object().size(), 3u);
  EXPECT_EQ(doc.as_object()[0].first, "b");
  EXPECT_EQ(doc.as_object()[1].first, "a");
  EXPECT_EQ(doc.at("a").as_integer(), 9007199254740993);
  EXPECT_EQ(doc.at("f").as_integer(), 3);
  EXPECT_EQ(doc.at("b").at("deep").where(), "x.json: b.deep");
  const Json::Array& items = doc.at("b").at("deep").as_array();
  EXPECT_EQ(items[1].as_number(), 2.5);
  EXPECT_TRUE(items[3].is_null());
  EXPECT_EQ(doc.find("zzz"), nullptr);
}

TEST(Json, ErrorsNameTheValue) {
  const Json doc = Json::parse(R"({"text_config": {"dim": "wide"}})", "config.json");
  try {
    doc.at("text_config").at("dim").as_integer();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "config.json: text_config.dim: expected an integer");
  }
  EXPECT_THROW(doc.at("text_config").at("n"), Error);
  EXPECT_THROW(Json::parse("1.5", "x").as_integer(), Error);
}

TEST(Json, HostileDocumentsAreCorruptFiles) {
  EXPECT_EQ(code_of(""), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of("{"), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of("{} x"), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of(R"({"a": 1, "a": 2})"), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of("\"\xff\""), ErrorCode::corrupt_file);
  EXPECT_EQ(code_of(std::string(1000000, '[')), ErrorCode::corrupt_file);
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += R"({"a":)";
  EXPECT_EQ(code_of(objects), ErrorCode::corrupt_file);
}

TEST(Json, PathsIncludeArrayIndices) {
  const Json doc = Json::parse(R"({"items": [0, [7, {"key": "x"}], {"a.b": [[]]}]})", "x.json");
  const Json::Array& items = doc.at("items").as_array();
  EXPECT_EQ(doc.where(), "x.json:");
  EXPECT_EQ(items[0].where(), "x.json: items[0]");
  EXPECT_EQ(items[1].as_array()[1].at("key").where(), "x.json: items[1][1].key");
  EXPECT_EQ(items[2].at("a.b").as_array()[0].where(), "x.json: items[2].a.b[0]");
  EXPECT_EQ(Json::parse(R"([1, {"k": 2}])", "x.json").as_array()[1].at("k").where(), "x.json: [1].k");
  EXPECT_EQ(Json().where(), "");
  const Json copy = items[1];  // a value outlives its document
  EXPECT_EQ(copy.as_array()[0].where(), "x.json: items[1][0]");
}

TEST(Json, ALongKeyIsNotRepeatedPerMember) {
  const size_t before = heap_bytes();
  std::string text = R"({")" + std::string(20000, 'k') + R"(":{)";
  for (int i = 0; i < 20000; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  text += "}}";
  const Json doc = Json::parse(text, "x.json");
  const Json::Object& members = doc.as_object()[0].second.as_object();
  EXPECT_EQ(members[19999].second.where(), "x.json: " + std::string(64, 'k') + "….19999");
  // Per member: the pair (capacity up to doubled), the key in Places, and nothing of the parent's name.
  EXPECT_LT(heap_bytes() - before, 20000 * (2 * sizeof(Json::Object::value_type) + 16) + 10 * text.size());
}

TEST(Json, MessagesStayShort) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += R"({")" + std::string(63, 'k') + "é" + R"(":)";
  const Json doc = Json::parse(text + "1" + std::string(40, '}'), "x.json");
  const Json* value = &doc;
  while (value->is_object()) value = &value->as_object()[0].second;
  EXPECT_LE(value->where().size(), 280u);
  // Cut between characters.
  EXPECT_EQ(doc.as_object()[0].second.where(), "x.json: " + std::string(63, 'k') + "…");
  const std::string key(100000, 'k');
  try {
    Json::parse("{\"" + key + "\":1,\"" + key + "\":2}", "x.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_LE(error.message().size(), 200u);
  }
}

}  // namespace
}  // namespace shoal
