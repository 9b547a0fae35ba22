#include <limits>

#include "server/body/body_testing.h"
#include "server/body/value.h"

namespace shoal::server {
namespace {

using testing::HasSubstr;

template <size_t N>
std::string raw(const char (&bytes)[N]) {
  return std::string(bytes, N - 1);
}

BodyError msgpack_error(std::string_view body) {
  return error_of([&] { read_msgpack(body); });
}

struct Form {
  std::string bytes;
  Value value;
};

// The specification's formats at the ends of their ranges, written by hand.
std::vector<Form> shortest_forms() {
  return {{raw("\xc0"), {}},
          {raw("\xc2"), {false}},
          {raw("\xc3"), {true}},
          {raw("\x00"), integer_value(0)},
          {raw("\x7f"), integer_value(127)},
          {raw("\xcc\x80"), integer_value(128)},
          {raw("\xcc\xff"), integer_value(255)},
          {raw("\xcd\x01\x00"), integer_value(256)},
          {raw("\xcd\xff\xff"), integer_value(65535)},
          {raw("\xce\x00\x01\x00\x00"), integer_value(65536)},
          {raw("\xce\xff\xff\xff\xff"), integer_value(4294967295)},
          {raw("\xcf\x00\x00\x00\x01\x00\x00\x00\x00"), integer_value(4294967296)},
          {raw("\xcf\x7f\xff\xff\xff\xff\xff\xff\xff"), integer_value(INT64_MAX)},
          {raw("\xff"), integer_value(-1)},
          {raw("\xe0"), integer_value(-32)},
          {raw("\xd0\xdf"), integer_value(-33)},
          {raw("\xd0\x80"), integer_value(-128)},
          {raw("\xd1\xff\x7f"), integer_value(-129)},
          {raw("\xd1\x80\x00"), integer_value(-32768)},
          {raw("\xd2\xff\xff\x7f\xff"), integer_value(-32769)},
          {raw("\xd2\x80\x00\x00\x00"), integer_value(-2147483648)},
          {raw("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"), integer_value(-2147483649)},
          {raw("\xd3\x80\x00\x00\x00\x00\x00\x00\x00"), integer_value(INT64_MIN)},
          {raw("\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"), {1.5}},
          {raw("\xa0"), text_value("")},
          {raw("\xa3\xe4\xb8\xad"), text_value("\xe4\xb8\xad")},
          {raw("\xbf") + std::string(31, 'x'), text_value(std::string(31, 'x'))},
          {raw("\xd9\x20") + std::string(32, 'x'), text_value(std::string(32, 'x'))},
          {raw("\xda\x01\x00") + std::string(256, 'x'), text_value(std::string(256, 'x'))},
          {raw("\xdb\x00\x01\x00\x00") + std::string(65536, 'x'), text_value(std::string(65536, 'x'))},
          {raw("\xc4\x00"), bytes_value("")},
          {raw("\xc4\x02\xff\x00"), bytes_value(raw("\xff\x00"))},
          {raw("\xc5\x01\x00") + std::string(256, '\xff'), bytes_value(std::string(256, '\xff'))},
          {raw("\xc6\x00\x01\x00\x00") + std::string(65536, 'x'), bytes_value(std::string(65536, 'x'))},
          {raw("\x90"), {Value::Array{}}},
          {raw("\x92\x01\xc0"), {Value::Array{integer_value(1), {}}}},
          {raw("\xdc\x00\x10") + std::string(16, '\x05'), {Value::Array(16, integer_value(5))}},
          {raw("\xdd\x00\x01\x00\x00") + std::string(65536, '\x05'), {Value::Array(65536, integer_value(5))}},
          {raw("\x80"), {Value::Object{}}},
          // The example of msgpack.org.
          {raw("\x82\xa7"
               "compact\xc3\xa6schema\x00"),
           {Value::Object{{"compact", {true}}, {"schema", integer_value(0)}}}}};
}

TEST(Msgpack, ReadsAndWritesTheShortestForms) {
  for (const Form& form : shortest_forms()) {
    SCOPED_TRACE(printable(form.bytes, 20));
    EXPECT_EQ(read_msgpack(form.bytes), form.value);
    EXPECT_EQ(write_msgpack(form.value), form.bytes);
  }
}

TEST(Msgpack, ReadsLongerForms) {
  const std::vector<Form> forms = {
      {raw("\xcc\x01"), integer_value(1)},
      {raw("\xcf\x00\x00\x00\x00\x00\x00\x00\x01"), integer_value(1)},
      {raw("\xd3\x00\x00\x00\x00\x00\x00\x00\x01"), integer_value(1)},
      {raw("\xd1\x00\x01"), integer_value(1)},
      {raw("\xca\x3f\xc0\x00\x00"), {1.5}},
      {raw("\xca\x7f\x7f\xff\xff"), {double{std::numeric_limits<float>::max()}}},
      {raw("\xd9\x01x"), text_value("x")},
      {raw("\xdb\x00\x00\x00\x01x"), text_value("x")},
      {raw("\xc6\x00\x00\x00\x01x"), bytes_value("x")},
      {raw("\xdd\x00\x00\x00\x01\x07"), {Value::Array{integer_value(7)}}},
      {raw("\xde\x00\x01\xd9\x01x\x07"), {Value::Object{{"x", integer_value(7)}}}},
      {raw("\xdf\x00\x00\x00\x01\xda\x00\x01x\x07"), {Value::Object{{"x", integer_value(7)}}}}};
  for (const Form& form : forms) EXPECT_EQ(read_msgpack(form.bytes), form.value) << printable(form.bytes);
}

TEST(Msgpack, RefusesEveryTruncation) {
  for (const Form& form : shortest_forms()) {
    for (size_t length = 0; length < std::min<size_t>(form.bytes.size(), 300); ++length)
      msgpack_error(std::string_view(form.bytes).substr(0, length));
  }
  EXPECT_THAT(msgpack_error(raw("\x01\x02")).message(), HasSubstr("1 bytes more"));
}

TEST(Msgpack, NeverTrustsADeclaredLength) {
  // 4 GiB in five bytes, and in a nest where each level claims all that is left.
  for (const char* type : {"\xc6", "\xdb", "\xdd", "\xdf"}) {
    EXPECT_THAT(msgpack_error(type + raw("\xff\xff\xff\xff")).message(), HasSubstr("not MessagePack"));
    EXPECT_THAT(msgpack_error(type + raw("\xff\xff\xff\xff") + std::string(1000, '\0')).message(),
                HasSubstr("not MessagePack"));
  }
  msgpack_error(raw("\xdf\x80\x00\x00\x00") + std::string(1000, '\0'));
  std::string nest;
  for (int level = 0; level < 31; ++level) nest += raw("\xdd\x00\x0f\x00\x00");
  msgpack_error(nest + std::string(0x0f0000, '\xdd'));
}

TEST(Msgpack, LimitsDepthAndNumberOfValues) {
  const auto nested = [](int levels, std::string_view open, char inmost) {
    std::string body;
    for (int i = 0; i < levels; ++i) body += open;
    return body + inmost;
  };
  EXPECT_NO_THROW(read_msgpack(nested(kMaxDepth, "\x91", '\x01')));
  EXPECT_THAT(msgpack_error(nested(kMaxDepth + 1, "\x91", '\x01')).message(), HasSubstr("32 levels"));
  EXPECT_THAT(msgpack_error(nested(1'000'000, "\x91", '\x01')).message(), HasSubstr("32 levels"));
  EXPECT_THAT(msgpack_error(nested(1'000'000, "\x81\xa1x", '\x01')).message(), HasSubstr("32 levels"));

  const auto zeros = [](uint32_t count) {
    std::string body = "\xdd";
    for (int shift = 24; shift >= 0; shift -= 8) body += static_cast<char>(count >> shift & 0xff);
    return body + std::string(count, '\0');
  };
  EXPECT_NO_THROW(read_msgpack(zeros(kMaxValues - 1)));
  EXPECT_THAT(msgpack_error(zeros(kMaxValues)).message(), HasSubstr("1048576 values"));
}

TEST(Msgpack, NamesTheFieldOfABadValue) {
  const auto in_seed = [](const std::string& value) { return raw("\x81\xa4seed") + value; };
  const std::vector<std::string> bad = {raw("\xcf\x80\x00\x00\x00\x00\x00\x00\x00"),  // 2^63
                                        raw("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),
                                        raw("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"),  // NaN
                                        raw("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00"),  // infinity
                                        raw("\xca\xff\x80\x00\x00"),
                                        raw("\xca\x7f\xc0\x00\x00"),
                                        raw("\xc1"),                      // never used
                                        raw("\xd4\x01\x02"),              // fixext 1
                                        raw("\xd6\xff\x00\x00\x00\x00"),  // a timestamp
                                        raw("\xc7\x01\x05x"),
                                        raw("\xa1\xff"),          // not UTF-8
                                        raw("\xa2\xc0\xaf"),      // overlong
                                        raw("\xa3\xed\xa0\x80"),  // a surrogate
                                        raw("\xa1\xc3")};
  for (const std::string& value : bad)
    EXPECT_EQ(msgpack_error(in_seed(value)).where(), "seed") << printable(value);
  EXPECT_EQ(msgpack_error(raw("\x91\x92\x01\xc1")).where(), "[0][1]");
}

TEST(Msgpack, AcceptsOnlyTextsAsNames) {
  for (const std::string& name :
       {raw("\x01"), raw("\xc0"), raw("\xc4\x01x"), raw("\x90"), raw("\xa1\xff"), raw("\xd4")})
    msgpack_error(raw("\x81") + name + raw("\x01"));
  EXPECT_EQ(msgpack_error(raw("\x82\xa1x\x01\xd9\x01x\x02")).where(), "x");
  EXPECT_EQ(msgpack_error(raw("\x81\xa1y\x82\xa1x\x01\xd9\x01x\x02")).where(), "y.x");
}

TEST(Msgpack, WrittenValuesReadBackTheSame) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Value value = RandomTree(seed, true).make();
    ASSERT_EQ(read_msgpack(write_msgpack(value)), value) << write_json(value);
  }
}

TEST(Msgpack, SurvivesChangedBytes) {
  std::mt19937_64 random(3);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::string bytes = write_msgpack(RandomTree(seed, true).make());
    for (int round = 0; round < 20; ++round) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
      try {
        const Value value = read_msgpack(bytes);
        ASSERT_EQ(read_msgpack(write_msgpack(value)), value);
      } catch (const BodyError&) {
      }
    }
  }
}

TEST(Msgpack, RefusesToWriteTextThatIsNotUtf8) { EXPECT_THROW(write_msgpack(text_value("\xff")), Error); }

}  // namespace
}  // namespace shoal::server
