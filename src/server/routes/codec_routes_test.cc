// Codes over HTTP: shapes, values, limits, clients that leave.
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "server/routes/clip_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::array_of;
using testing::bytes_value;
using testing::clip_file;
using testing::packed_request;
using testing::text_of;

constexpr const char* kEncode = "/v1/vqgan/encode";
constexpr const char* kDecode = "/v1/vqgan/decode";

class Codes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = new Engine(testing::built_in_config());
    engine_->start();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }

  Answered ask(const char* path, const Value& body, const char* accept = nullptr) {
    Request request = packed_request("POST", path, body);
    if (accept) request.headers.add("Accept", accept);
    return bench_.ask(std::move(request));
  }
  Answered encode(std::vector<std::string> clips, const char* accept = nullptr) {
    Value::Array audios;
    for (std::string& clip : clips) audios.push_back(bytes_value(std::move(clip)));
    return ask(kEncode, {Value::Object{{"audios", {std::move(audios)}}}}, accept);
  }
  Answered decode(Value::Array clips, const char* accept = nullptr) {
    return ask(kDecode, {Value::Object{{"tokens", {std::move(clips)}}}}, accept);
  }
  // [codebooks][frames] of a clip whose codes are all `code`.
  static Value clip_of(int frames, Value code = {int64_t{1}}) {
    const Value row{Value::Array(static_cast<size_t>(frames), std::move(code))};
    return {Value::Array(static_cast<size_t>(engine_->codec_shape().codebooks), row)};
  }
  static Value transposed(const EncodedClip& clip) {
    Value::Array rows;
    for (int book = 0; book < clip.codebooks; ++book) {
      Value::Array row;
      for (int64_t t = 0; t < clip.frames; ++t)
        row.push_back({int64_t{clip.codes[static_cast<size_t>(t * clip.codebooks + book)]}});
      rows.push_back({std::move(row)});
    }
    return {std::move(rows)};
  }

  static Engine* engine_;
  testing::RouteBench bench_{codec_routes, *engine_};
};
Engine* Codes::engine_ = nullptr;

double half(const std::string& bytes, size_t index) {
  const auto bits = static_cast<unsigned>(static_cast<unsigned char>(bytes[2 * index]) |
                                          static_cast<unsigned char>(bytes[2 * index + 1]) << 8);
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = (bits & 1023) / 1024.0;
  const double size = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return bits & 0x8000 ? -size : size;
}

void expect_sound(const std::string& bytes, const std::vector<float>& samples) {
  ASSERT_EQ(bytes.size(), 2 * samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {  // half a unit in the last of 11 bits, or of a denormal
    const double bound = std::max(std::abs(samples[i]) * 0x1p-11, 0x1p-25);
    ASSERT_NEAR(half(bytes, i), samples[i], bound) << i;
  }
}

TEST_F(Codes, ClipsAreEncodedAsCodesByCodebook) {
  const std::string first = clip_file(1), second = clip_file(0.6, audio::Format::flac);
  const Answered answer = encode({first, second});
  ASSERT_EQ(answer.status, 200) << answer.body();
  EXPECT_EQ(answer.content_type, "application/msgpack");
  const Value body = read_msgpack(answer.body());
  const Value::Array& tokens = array_of(body, "tokens");
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0], transposed(engine_->encode(first)));
  EXPECT_EQ(tokens[1], transposed(engine_->encode(second)));
  const Answered in_json = encode({first, second}, "application/json");
  EXPECT_EQ(in_json.content_type, "application/json");
  EXPECT_EQ(read_json(in_json.body()), body);
  const Answered from_json = bench_.ask(testing::json_request(
      kEncode, "{\"audios\":[\"" + to_base64(first) + "\",\"" + to_base64(second) + "\"]}"));
  EXPECT_EQ(from_json.body(), answer.body());
  EXPECT_EQ(read_msgpack(encode({}).body()), (Value{Value::Object{{"tokens", {Value::Array{}}}}}));
}

TEST_F(Codes, CodesAreDecodedToHalfFloats) {
  const EncodedClip first = engine_->encode(clip_file(1)), second = engine_->encode(clip_file(0.6));
  const Answered answer = decode({transposed(first), transposed(second)});
  ASSERT_EQ(answer.status, 200) << answer.body();
  EXPECT_EQ(answer.content_type, "application/msgpack");
  EXPECT_TRUE(answer.whole);
  const Value body = read_msgpack(answer.body());
  const Value::Array& audios = array_of(body, "audios");
  ASSERT_EQ(audios.size(), 2u);
  ASSERT_TRUE(audios[0].as<Bytes>() && audios[1].as<Bytes>());
  expect_sound(audios[0].as<Bytes>()->data, engine_->decode(first.codes));
  expect_sound(audios[1].as<Bytes>()->data, engine_->decode(second.codes));

  const Answered in_json = decode({transposed(first), transposed(second)}, "application/json");
  EXPECT_EQ(in_json.content_type, "application/json");
  const Value read = read_json(in_json.body());
  const Value::Array& texts = array_of(read, "audios");
  ASSERT_EQ(texts.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(*from_base64(*texts[i].as<std::string>()), audios[i].as<Bytes>()->data);
  EXPECT_EQ(read_json(decode({}, "application/json").body()),
            (Value{Value::Object{{"audios", {Value::Array{}}}}}));
  EXPECT_EQ(read_msgpack(decode({}).body()), (Value{Value::Object{{"audios", {Value::Array{}}}}}));
}

TEST_F(Codes, ManyClipsAreOneArray) {
  ServerConfig config;
  const auto clips = static_cast<size_t>(config.max_batch_items);
  const Answered answer = decode(Value::Array(clips, clip_of(1)));
  EXPECT_EQ(array_of(read_msgpack(answer.body()), "audios").size(), clips);
  EXPECT_EQ(decode(Value::Array(clips + 1, clip_of(1))).status, 422);
  EXPECT_EQ(encode(std::vector<std::string>(clips + 1, "x")).status, 422);
}

TEST_F(Codes, CodesOutOfRangeAreRefusedWithTheirPosition) {
  const CodecShape shape = engine_->codec_shape();
  const auto with = [&](size_t book, size_t frame, Value code) {
    Value clip = clip_of(3);
    std::get<Value::Array>(std::get<Value::Array>(clip.data)[book].data)[frame] = std::move(code);
    return decode({clip_of(2), std::move(clip)});
  };
  EXPECT_EQ(with(0, 0, {int64_t{shape.semantic_entries - 1}}).status, 200);
  EXPECT_EQ(with(1, 0, {int64_t{shape.residual_entries - 1}}).status, 200);
  const std::vector<std::pair<size_t, Value>> bad = {{0, {int64_t{shape.semantic_entries}}},
                                                     {1, {int64_t{shape.residual_entries}}},
                                                     {0, {int64_t{-1}}},
                                                     {1, {INT64_MAX}},
                                                     {1, {INT64_MIN}},
                                                     {1, {1.5}},
                                                     {1, {1e308}},
                                                     {0, {std::string("1 and more")}},
                                                     {1, {true}},
                                                     {1, {}},
                                                     {0, {Value::Array{}}}};
  for (const auto& [book, code] : bad) {
    const Answered answer = with(book, 2, code);
    EXPECT_EQ(answer.status, 422) << write_json(code);
    const std::string place = "tokens[1][" + std::to_string(book) + "][2]";
    EXPECT_NE(text_of(read_json(answer.body()), "message").find(place), std::string::npos) << answer.body();
  }
}

TEST_F(Codes, ValuesThatAreNotNumbersAreRefused) {
  // {"tokens": [[[nan]]]}, {"tokens": [[[2^64 - 1]]]}
  for (const std::string& number :
       {std::string("\xcb\x7f\xf8\0\0\0\0\0\0", 9), std::string("\xcb\x7f\xf0\0\0\0\0\0\0", 9),
        std::string("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9)}) {
    Request request = packed_request("POST", kDecode, {});
    request.body = "\x81\xa6tokens\x91\x91\x91" + number;
    const Answered answer = bench_.ask(std::move(request));
    EXPECT_TRUE(answer.status == 400 || answer.status == 422) << answer.status << answer.body();
  }
}

TEST_F(Codes, MismatchedShapesAreRefused) {
  Value ragged = clip_of(3), narrow = clip_of(3), wide = clip_of(3), empty = clip_of(0);
  std::get<Value::Array>(std::get<Value::Array>(ragged.data)[1].data).pop_back();
  std::get<Value::Array>(narrow.data).pop_back();
  std::get<Value::Array>(wide.data).push_back(std::get<Value::Array>(wide.data)[0]);
  for (const Value& clip : {ragged, narrow, wide, empty, Value{Value::Array{}}, Value{int64_t{1}}, Value{}})
    EXPECT_EQ(decode({clip}).status, 422) << write_json(clip);
  EXPECT_EQ(ask(kDecode, {Value::Object{}}).status, 422);
  EXPECT_EQ(ask(kDecode, {Value::Object{{"tokens", {std::string("x")}}}}).status, 422);
  EXPECT_EQ(ask(kDecode, {Value::Object{{"token", {Value::Array{}}}}}).status, 422);
  EXPECT_EQ(ask(kEncode, {Value::Object{{"audios", {Value::Array{{int64_t{1}}}}}}}).status, 422);
}

TEST_F(Codes, SoundBeyondTheLimitsIsRefusedBeforeAnyWork) {
  const int64_t encoded = engine_->statistics().voices.encoded;
  EXPECT_EQ(encode({clip_file(0.7), testing::long_flac(3600)}).status, 413);
  EXPECT_EQ(encode({clip_file(0.7), "not sound"}).status, 400);
  EXPECT_EQ(engine_->statistics().voices.encoded, encoded);
  EXPECT_NE(encode({testing::claims_hours(clip_file(0.7, audio::Format::flac))}).status, 500);

  ServerConfig config;
  config.max_reference_s = 2;
  config.max_references = 2;
  testing::RouteBench strict(codec_routes, *engine_, config);
  const CodecShape shape = engine_->codec_shape();
  const int frames_of_a_second = engine_->sample_rate_hz() / shape.samples_per_frame;
  const auto status = [&](std::vector<int> frames) {
    Value::Array clips;
    for (const int count : frames) clips.push_back(clip_of(count));
    return strict.ask(packed_request("POST", kDecode, {Value::Object{{"tokens", {std::move(clips)}}}}))
        .status;
  };
  EXPECT_EQ(status({2 * frames_of_a_second}), 200);
  EXPECT_EQ(status({3 * frames_of_a_second}), 413);
  const int most = 3 * frames_of_a_second / 2;  // 1.5 s
  EXPECT_EQ(status({most, most}), 200);
  EXPECT_EQ(status({most, most, most}), 413);  // each is short enough, all together are not
  Value::Array clips(3, bytes_value(clip_file(1.5)));
  EXPECT_EQ(
      strict.ask(packed_request("POST", kEncode, {Value::Object{{"audios", {std::move(clips)}}}})).status,
      413);
}

TEST_F(Codes, WorkStopsWhenTheClientLeaves) {
  const int64_t encoded = engine_->statistics().voices.encoded;
  const Value body{Value::Object{{"audios", {Value::Array{bytes_value(clip_file(0.9))}}}}};
  const Answered gone =
      bench_.ask(packed_request("POST", kEncode, body), [](auto& exchange) { exchange.leave(); });
  EXPECT_EQ(gone.status, 0);
  ASSERT_TRUE(gone.error);
  EXPECT_EQ(gone.error->code(), ErrorCode::cancelled);
  EXPECT_EQ(engine_->statistics().voices.encoded, encoded);

  Request request =
      packed_request("POST", kDecode, {Value::Object{{"tokens", {Value::Array(20, clip_of(2))}}}});
  const Answered cut = bench_.ask(std::move(request), [](auto& exchange) {
    exchange.on_piece = [](auto& after) {
      if (after.answered.pieces.size() == 3) after.leave();
    };
  });
  EXPECT_EQ(cut.pieces.size(), 3u);
  EXPECT_FALSE(cut.whole);
  EXPECT_EQ(cut.error->code(), ErrorCode::cancelled);
}

TEST_F(Codes, NoWorkStartsAfterTheDeadline) {
  ServerConfig config;
  config.max_timeout_s = 0;  // over when it arrives
  testing::RouteBench late(codec_routes, *engine_, config);
  const int64_t encoded = engine_->statistics().voices.encoded;
  const Value audios{Value::Object{{"audios", {Value::Array{bytes_value(clip_file(0.8))}}}}};
  EXPECT_EQ(late.ask(packed_request("POST", kEncode, audios)).status, 504);
  EXPECT_EQ(engine_->statistics().voices.encoded, encoded);
  const Value tokens{Value::Object{{"tokens", {Value::Array{clip_of(2)}}}}};
  EXPECT_EQ(late.ask(packed_request("POST", kDecode, tokens)).status, 504);
}

TEST_F(Codes, WithoutAModelTheServiceIsUnavailable) {
  Engine idle(testing::built_in_config());
  testing::RouteBench bench(codec_routes, idle);
  const Value tokens{Value::Object{{"tokens", {Value::Array{clip_of(1)}}}}};
  EXPECT_EQ(bench.ask(packed_request("POST", kDecode, tokens)).status, 503);
  const Value audios{Value::Object{{"audios", {Value::Array{bytes_value(clip_file(1))}}}}};
  const Answered answer = bench.ask(packed_request("POST", kEncode, audios));
  EXPECT_EQ(answer.status, 503);
  EXPECT_FALSE(answer.header("Retry-After").empty());
}

}  // namespace
}  // namespace shoal::server
