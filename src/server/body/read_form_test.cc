#include "server/body/body_testing.h"
#include "server/body/form_fields.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

using testing::HasSubstr;

BodyError form_error(std::string_view body, std::string_view boundary = "X") {
  SCOPED_TRACE(printable(body, 80));
  return error_of([&] { read_form(body, boundary); });
}

std::string part(std::string_view disposition, std::string_view content, std::string_view more = "") {
  return concat("--X\r\nContent-Disposition: ", disposition, "\r\n", more, "\r\n", content, "\r\n");
}

Value form_of(Value::Object fields) { return {std::move(fields)}; }

TEST(ReadForm, ReadsABrowsersForm) {
  // As Chromium writes it.
  const std::string boundary = "----WebKitFormBoundary7MA4YWxkTrZu0gW";
  const std::string body =
      "------WebKitFormBoundary7MA4YWxkTrZu0gW\r\n"
      "Content-Disposition: form-data; name=\"id\"\r\n"
      "\r\n"
      "my voice\r\n"
      "------WebKitFormBoundary7MA4YWxkTrZu0gW\r\n"
      "Content-Disposition: form-data; name=\"audio\"; filename=\"a \\\"b\\\".wav\"\r\n"
      "Content-Type: audio/wav\r\n"
      "\r\n"
      "RIFF\r\n--\r\n------WebKitFormBoundary\r\n\xff\r\n"
      "------WebKitFormBoundary7MA4YWxkTrZu0gW\r\n"
      "Content-Disposition: form-data; name=\"text\"\r\n"
      "\r\n"
      "\r\n"
      "------WebKitFormBoundary7MA4YWxkTrZu0gW--\r\n";
  const Value expected = form_of({{"id", text_value("my voice")},
                                  {"audio", bytes_value("RIFF\r\n--\r\n------WebKitFormBoundary\r\n\xff")},
                                  {"text", text_value("")}});
  EXPECT_EQ(read_form(body, boundary), expected);
}

TEST(ReadForm, ReadsTheExampleOfItsSpecification) {
  // RFC 7578 4.2 and 5.1.2, with the closing delimiter that it leaves out.
  const std::string body =
      "--AaB03x\r\n"
      "content-disposition: form-data; name=\"_charset_\"\r\n"
      "\r\n"
      "UTF-8\r\n"
      "--AaB03x \t\r\n"
      "CONTENT-DISPOSITION:form-data;name=field1\r\n"
      "content-type: text/plain;charset=UTF-8\r\n"
      "content-transfer-encoding: 8bit\r\n"
      "\r\n"
      "Joe owes \xe2\x82\xac"
      "100.\r\n"
      "--AaB03x--";
  EXPECT_EQ(read_form(body, "AaB03x"), form_of({{"_charset_", text_value("UTF-8")},
                                                {"field1", text_value("Joe owes \xe2\x82\xac"
                                                                      "100.")}}));
}

TEST(ReadForm, GathersRepeatedNames) {
  const std::string body = part("form-data; name=a", "1") + part("form-data; name=b", "2") +
                           part("form-data; name=a; filename=\"\"", "3") + part("form-data; name=a", "4") +
                           "--X--";
  EXPECT_EQ(read_form(body, "X"),
            form_of({{"a", {Value::Array{text_value("1"), bytes_value("3"), text_value("4")}}},
                     {"b", text_value("2")}}));
}

TEST(ReadForm, TellsFilesFromTexts) {
  const auto only = [](std::string_view disposition) {
    return read_form(part(disposition, "\xc3\xa9") + "--X--\r\n", "X");
  };
  EXPECT_EQ(only("form-data; name=\"a\""), form_of({{"a", text_value("\xc3\xa9")}}));
  EXPECT_EQ(only("form-data; name=\"a\"; filename=\"C:\\x\\y.wav\""),
            form_of({{"a", bytes_value("\xc3\xa9")}}));
  EXPECT_EQ(only("form-data; filename*=UTF-8''x.wav; name=\"a\""), form_of({{"a", bytes_value("\xc3\xa9")}}));
  EXPECT_EQ(only("form-data; name=\"\\\"a\\\\;\""), form_of({{"\"a\\;", text_value("\xc3\xa9")}}));
  EXPECT_EQ(only("Form-Data; NAME=\"\xc3\xa9\""), form_of({{"\xc3\xa9", text_value("\xc3\xa9")}}));
}

TEST(ReadForm, BracketsInNamesNestValues) {
  const auto field = [](const std::string& name, const std::string& text) {
    return part("form-data; name=\"" + name + "\"", text);
  };
  const Value one = form_of({{"audio", text_value("a")}, {"text", text_value("b")}});
  const Value two = form_of({{"text", text_value("d")}, {"audio", text_value("c")}});
  const Value want = form_of({{"x", text_value("y")}, {"references", {Value::Array{one, two}}}});
  EXPECT_EQ(
      read_form(field("x", "y") + field("references[0][audio]", "a") + field("references[0][text]", "b") +
                    field("references[1][text]", "d") + field("references[1][audio]", "c") + "--X--",
                "X"),
      want);
  EXPECT_EQ(read_form(field("x", "y") + field("references[0].audio", "a") + field("references[0].text", "b") +
                          field("references[1].text", "d") + field("references[1].audio", "c") + "--X--",
                      "X"),
            want);
  EXPECT_EQ(read_form(field("a[0]", "1") + field("a[1]", "2") + "--X--", "X"),
            form_of({{"a", {Value::Array{text_value("1"), text_value("2")}}}}));
}

TEST(ReadForm, OtherNamesStayAsTheyAre) {
  for (const std::string name :
       {"a[", "a[]", "[0]", "a[0", "a]0[", "a.", ".a", "a[0]b", "a..b", "a[0][1][2][3][4][5][6][7]"})
    EXPECT_EQ(read_form(part("form-data; name=\"" + name + "\"", "1") + "--X--", "X"),
              form_of({{name, text_value("1")}}))
        << name;
}

TEST(ReadForm, RefusesNamesThatContradictEachOther) {
  const auto form = [](std::initializer_list<const char*> names) {
    std::string body;
    for (const char* name : names) body += part("form-data; name=\"" + std::string(name) + "\"", "1");
    return body + "--X--";
  };
  for (const std::string& body : {form({"a", "a[0]"}), form({"a[0]", "a"}), form({"a[0]", "a[b]"}),
                                  form({"a[0][b]", "a[0]"}), form({"a[b]", "a[b][c]"})})
    EXPECT_THAT(form_error(body).message(), HasSubstr("found both"));
  for (const std::string& body : {form({"a[1]"}), form({"a[0]", "a[2]"}), form({"a[255][b]"})})
    EXPECT_THAT(form_error(body).message(), HasSubstr("indices from 0 in order"));
}

TEST(ReadForm, ReadsAFormWithoutParts) {
  EXPECT_EQ(read_form("--X--\r\n", "X"), form_of({}));
  EXPECT_EQ(read_form("\r\n--X--", "X"), form_of({}));
}

TEST(ReadForm, RefusesEveryTruncation) {
  const std::string body =
      part("form-data; name=a", "1") + part("form-data; name=b; filename=c", "\r\n--") + "--X--";
  EXPECT_NO_THROW(read_form(body, "X"));
  for (size_t length = 0; length < body.size(); ++length)
    form_error(std::string_view(body).substr(0, length));
}

TEST(ReadForm, RefusesAmbiguousForms) {
  const std::string sound = part("form-data; name=a", "1") + "--X--\r\n";
  EXPECT_NO_THROW(read_form(sound, "X"));
  for (const std::string& body :
       {"preamble\r\n" + sound, "\n" + sound, sound + "epilogue", sound + "\r\n", sound + sound,
        std::string("--X\n\n"), std::string("--X--X\r\n"), std::string("--Y--"),
        std::string("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--X--"),
        part("form-data; name=a", "1\r\n--XY") + "--X--"})
    EXPECT_THAT(form_error(body).message(), HasSubstr("not a form")) << body;
}

TEST(ReadForm, RefusesBadHeads) {
  for (const char* disposition :
       {"", "form-data", "attachment; name=a", "form-data; name", "form-data; name=", "form-data; name=\"a",
        "form-data; name=a; name=b", "form-data name=a", "form-data; name*=UTF-8''a", "form-data; name=\"\"",
        "form-data; name=\"\xff\"", "; name=a", "form-data; name=a b"})
    form_error(part(disposition, "1") + "--X--");
  for (const char* more :
       {"Content-Disposition: form-data; name=a\r\n", " folded: x\r\n", "no colon\r\n", "a b: c\r\n",
        "Content-Transfer-Encoding: base64\r\n", "Content-Transfer-Encoding: quoted-printable\r\n",
        "Content-Type: text/plain; charset=latin1\r\n", "Content-Type: ;;\r\n"})
    form_error(part("form-data; name=a", "1", more) + "--X--");
  form_error("--X\r\n\r\n1\r\n--X--");
  EXPECT_EQ(form_error(part("form-data; name=a", "\xff") + "--X--").where(), "a");
}

TEST(ReadForm, LimitsHeadsAndParts) {
  const auto padded = [](size_t bytes) {
    return part("form-data; name=a", "1", "X-Padding: " + std::string(bytes, 'x') + "\r\n") + "--X--";
  };
  EXPECT_NO_THROW(read_form(padded(8000), "X"));
  EXPECT_THAT(form_error(padded(8192)).message(), HasSubstr("8192 bytes of header"));
  form_error("--X\r\n" + std::string(1 << 20, 'a'));

  for (const char* name : {"name=a", ""}) {
    std::string body;
    for (size_t i = 0; i < kMaxFormFields; ++i)
      body += part(concat("form-data; ", *name ? name : concat("name=n", i)), "1");
    EXPECT_NO_THROW(read_form(body + "--X--", "X"));
    body += part("form-data; name=a", "1");
    EXPECT_THAT(form_error(body + "--X--").message(), HasSubstr("at most 256 fields"));
  }
}

TEST(ReadForm, ChecksTheBoundary) {
  const std::string longest(70, 'b');
  EXPECT_EQ(read_form("--" + longest + "--", longest), form_of({}));
  EXPECT_EQ(read_form("--a b'()+_,-./:=?--", "a b'()+_,-./:=?"), form_of({}));
  for (const std::string& bad :
       {std::string(), std::string(71, 'b'), std::string("a "), std::string("a\r\nb"),
        std::string("\xc3\xa9"), std::string(1, '\0'), std::string("a\"")})
    EXPECT_THAT(form_error("--" + bad + "--", bad).message(), HasSubstr("boundary"));
}

TEST(ReadForm, NearMatchesOfTheBoundaryAreNotSlow) {
  std::string content;
  while (content.size() < 1 << 22) content += "\r\n--" + std::string(69, 'b');
  const std::string boundary(70, 'b');
  const std::string body = "--" + boundary +
                           "\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\n" + content +
                           "\r\n--" + boundary + "--";
  EXPECT_EQ(read_form(body, boundary), form_of({{"a", bytes_value(content)}}));
}

}  // namespace
}  // namespace shoal::server
