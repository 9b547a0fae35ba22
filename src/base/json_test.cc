#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

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

}  // namespace
}  // namespace shoal
