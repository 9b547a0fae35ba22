#include "server/body/body_testing.h"
#include "server/body/media_type.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

using testing::HasSubstr;

const Value kOne = {Value::Object{{"a", integer_value(1)}}};
const Value kOneText = {Value::Object{{"a", text_value("1")}}};

TEST(ReadBody, ChoosesByContentType) {
  for (const char* type :
       {"application/json", "Application/JSON", " application/json ; charset=utf-8",
        "application/json;charset=\"UTF-8\"", "application/json;charset=utf8;", "application/json; x=y"})
    EXPECT_EQ(read_body(type, R"({"a":1})"), kOne) << type;
  EXPECT_EQ(read_body("application/msgpack",
                      "\x81\xa1"
                      "a\x01"),
            kOne);
  const std::string_view form = "--B==1\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B==1--";
  for (const char* type :
       {"multipart/form-data; boundary=B==1", "multipart/form-data; charset=utf-8;BOUNDARY=\"B==1\"",
        "multipart/form-data;boundary=B==1 ; x=\"\""})
    EXPECT_EQ(read_body(type, form), kOneText) << type;
}

TEST(ReadBody, ReadsFormsOfText) {
  const auto read = [](std::string_view body) {
    return read_body("application/x-www-form-urlencoded", body);
  };
  EXPECT_EQ(read("a=1"), kOneText);
  EXPECT_EQ(read(""), Value{Value::Object{}});
  const Value expected{
      Value::Object{{"title", text_value("A fish & a moon")},
                    {"tags", {Value::Array{text_value("gr\xC3\xBC\xC3\x9F"), text_value("=")}}},
                    {"x", {Value::Object{{"y", text_value("")}}}}}};
  EXPECT_EQ(read("title=A+fish+%26%20a+moon&tags=gr%c3%BC%C3%9F&&tags==&x%5By%5D"), expected);
  for (const char* bad : {"a=%", "a=%2", "a=%zz", "a=%00", "=1", "a=%ff", "%ff=a", "a=1&a[b]=2"})
    EXPECT_EQ(error_of([&] { read(bad); }).code(), ErrorCode::invalid_argument) << bad;
  std::string many;
  for (int i = 0; i < 300; ++i) many += "&a" + std::to_string(i) + "=1";
  EXPECT_THAT(error_of([&] { read(many); }).message(), HasSubstr("at most 256 fields"));
}

TEST(ReadBody, RefusesOtherTypesAndListsTheAcceptedOnes) {
  for (const char* type :
       {"", " ", "text/plain", "application/xml", "application/jsonx", "json", "application/x-msgpack",
        "application/", ";", "multipart/mixed; boundary=X", "application/json; charset",
        "application/json charset=utf-8", "application/json, text/plain", "\xff"}) {
    const BodyError error = error_of([&] { read_body(type, "{}"); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << type;
    EXPECT_EQ(error.where(), "");
    EXPECT_THAT(error.message(), HasSubstr("application/msgpack"));
  }
  EXPECT_THAT(error_of([] { read_body("", "{}"); }).message(), HasSubstr("found none"));
  for (const char* type :
       {"application/json; charset=latin1", "multipart/form-data; boundary=X; charset=\"utf-16\""})
    EXPECT_EQ(error_of([&] { read_body(type, "{}"); }).code(), ErrorCode::unsupported) << type;
}

TEST(ReadBody, RequiresABoundary) {
  for (const char* type : {"multipart/form-data", "multipart/form-data; boundary=\"\""}) {
    const BodyError error = error_of([&] { read_body(type, "--X--"); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr("boundary"));
  }
}

TEST(MediaType, ReadsParameters) {
  const auto type = parse_media_type("Form-Data ;A=1; b=\"x;\\\"y\\\\\\z\";c=/:=");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->value, "form-data");
  EXPECT_EQ(*type->find("a"), "1");
  EXPECT_EQ(*type->find("b"), "x;\"y\\\\z");
  EXPECT_EQ(*type->find("c"), "/:=");
  EXPECT_EQ(type->find("d"), nullptr);
  for (const char* bad :
       {"", ";a=1", "x; a", "x; =1", "x; a=", "x; a=\"", "x; a=\"\\\"", "x; a=1 b=2", "x; a=1; A=2", "x y"})
    EXPECT_FALSE(parse_media_type(bad)) << bad;
}

}  // namespace
}  // namespace shoal::server
