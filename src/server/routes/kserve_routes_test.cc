// The open inference protocol: what its routes answer, against what /v1/tts says of the same request.
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "base/base64.h"
#include "server/body/infer_body.h"
#include "server/routes/clip_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::array_of;
using testing::json_request;
using testing::member;
using testing::text_of;

std::vector<Route> kserve_and_fish(const ServerConfig& config) {
  std::vector<Route> routes = kserve_routes(config);
  for (Route& route : fish_routes(config)) routes.push_back(std::move(route));
  return routes;
}

uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 4; i-- > 0;) word = word << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return word;
}

std::vector<float> floats_of(std::string_view bytes) {
  std::vector<float> floats;
  for (size_t at = 0; at < bytes.size(); at += 4) floats.push_back(std::bit_cast<float>(word_at(bytes, at)));
  return floats;
}

double as_number(const Value& value) {
  return value.as<int64_t>() ? static_cast<double>(*value.as<int64_t>()) : *value.as<double>();
}

constexpr const char* kParameters = R"("parameters":{"seed":3,"max_new_tokens":20)";

class KServe : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine_ = new Engine(testing::built_in_config());
    engine_->start();
  }
  static void TearDownTestSuite() {
    delete engine_;
    engine_ = nullptr;
  }
  Answered post(const std::string& tail, const std::string& body) {
    return bench_.ask(json_request("/v2/models/shoal" + tail, body));
  }
  // The text "A fish." with these further parameters and members.
  Answered infer(const std::string& parameters = "", const std::string& members = "") {
    return post(
        "/infer",
        std::string(
            R"({"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1],"data":["A fish."]}],)") +
            kParameters + parameters + "}" + members + "}");
  }
  // What /v1/tts says of it.
  std::string spoken(const std::string& format, int rate_hz = 0) {
    const std::string rate = rate_hz ? ",\"sample_rate\":" + std::to_string(rate_hz) : "";
    const Answered answer = bench_.ask(json_request(
        "/v1/tts",
        R"({"text":"A fish.","seed":3,"max_new_tokens":20,"temperature":0.7,"top_p":0.7,"repetition_penalty":1.2,"format":")" +
            format + "\"" + rate + "}"));
    EXPECT_EQ(answer.status, 200) << answer.body();
    return answer.body();
  }
  std::string error_of(const Answered& answer, int status = 400) {
    EXPECT_EQ(answer.status, status) << answer.body().substr(0, 300);
    return text_of(read_json(answer.body()), "error");
  }

  static Engine* engine_;
  testing::RouteBench bench_{kserve_and_fish, *engine_};
};
Engine* KServe::engine_ = nullptr;

constexpr const char* kAsTts = R"(,"temperature":0.7,"top_p":0.7,"repetition_penalty":1.2)";

TEST_F(KServe, SamplesAreThoseOfTheOtherRoutes) {
  const Answered answer = infer(kAsTts);
  ASSERT_EQ(answer.status, 200) << answer.body();
  const Value body = read_json(answer.body());
  EXPECT_EQ(text_of(body, "model_name"), "shoal");
  EXPECT_EQ(text_of(member(body, "parameters"), "seed"), "3");
  const Value::Array& outputs = array_of(body, "outputs");
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(text_of(outputs[0], "name") + text_of(outputs[0], "datatype"), "audioFP32");
  EXPECT_EQ(text_of(outputs[1], "name") + text_of(outputs[1], "datatype"), "sample_rateINT32");
  EXPECT_EQ(as_number(array_of(outputs[1], "data").at(0)), engine_->sample_rate_hz());
  const Value::Array& data = array_of(outputs[0], "data");
  EXPECT_EQ(as_number(array_of(outputs[0], "shape").at(0)), data.size());
  const std::string pcm = spoken("pcm");
  ASSERT_EQ(pcm.size(), 2 * data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    const auto sample = static_cast<int16_t>(word_at(pcm + "  ", 2 * i) & 0xffff);
    ASSERT_NEAR(as_number(data[i]) * 32768, sample, 1.01) << i;
  }
}

TEST_F(KServe, BytesBehindTheJsonAreTheSameSamples) {
  const Value plain = read_json(infer().body());
  const Answered answer = infer(
      R"(,"binary_data_output":true)",
      R"(,"outputs":[{"name":"audio_file"},{"name":"audio"},{"name":"sample_rate","parameters":{"binary_data":false}}])");
  ASSERT_EQ(answer.status, 200) << answer.body();
  EXPECT_EQ(answer.content_type, "application/octet-stream");
  const size_t json_bytes = std::stoul(answer.header("inference-header-content-length"));
  const Value body = read_json(answer.body().substr(0, json_bytes));
  std::string_view rest = std::string_view(answer.body()).substr(0);
  const std::string all = answer.body();
  rest = std::string_view(all).substr(json_bytes);
  const Value::Array& outputs = array_of(body, "outputs");
  ASSERT_EQ(outputs.size(), 3u);
  const auto bytes_of = [](const Value& output) {
    return static_cast<size_t>(as_number(member(member(output, "parameters"), "binary_data_size")));
  };
  const std::vector<float> samples = floats_of(rest.substr(0, bytes_of(outputs[0])));
  const Value::Array& wanted = array_of(array_of(plain, "outputs").at(0), "data");
  ASSERT_EQ(samples.size(), wanted.size());
  for (size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(samples[i], static_cast<float>(as_number(wanted[i])));
  const std::string_view file = rest.substr(bytes_of(outputs[0]));
  ASSERT_EQ(file.size(), bytes_of(outputs[1]));
  EXPECT_EQ(word_at(file, 0), file.size() - 4);
  EXPECT_EQ(file.substr(4, 4), "RIFF");
  EXPECT_EQ(array_of(outputs[2], "data").size(), 1u);
}

TEST_F(KServe, FilesAndRatesAreAsAsked) {
  const auto file = [&](const std::string& parameters) {
    const Value body = read_json(infer(kAsTts + parameters, R"(,"outputs":[{"name":"audio_file"}])").body());
    return from_base64(*array_of(array_of(body, "outputs").at(0), "data").at(0).as<std::string>()).value();
  };
  EXPECT_EQ(file(R"(,"response_format":"pcm")"), spoken("pcm"));
  EXPECT_EQ(file(R"(,"response_format":"pcm","sample_rate":16000)"), spoken("pcm", 16000));
  EXPECT_EQ(file(R"(,"response_format":"flac")").substr(0, 4), "fLaC");
  EXPECT_EQ(file(R"(,"response_format":"ulaw")"), spoken("ulaw"));
  const Value slow = read_json(infer(R"(,"sample_rate":8000)").body());
  EXPECT_EQ(as_number(array_of(array_of(slow, "outputs").at(1), "data").at(0)), 8000);
}

TEST_F(KServe, GenerateIsOneFileAndItsStreamTheSameInPieces) {
  const std::string body =
      std::string(R"({"id":"a","text_input":"A fish. Two fish, and a third one.","response_format":"pcm",)") +
      kParameters + "}}";
  const Answered whole = post("/generate", body);
  ASSERT_EQ(whole.status, 200) << whole.body();
  const Value told = read_json(whole.body());
  EXPECT_EQ(text_of(told, "id") + text_of(told, "model_name"), "ashoal");
  EXPECT_EQ(as_number(member(told, "sample_rate")), engine_->sample_rate_hz());
  const Answered stream = post("/generate_stream", body);
  EXPECT_EQ(stream.content_type, "text/event-stream; charset=utf-8");
  std::string pieces;
  for (const std::string& piece : stream.pieces) {
    ASSERT_TRUE(piece.starts_with("data: ") && piece.ends_with("\n\n")) << piece.substr(0, 80);
    pieces += from_base64(text_of(read_json(piece.substr(6)), "audio_file")).value();
  }
  EXPECT_GT(stream.pieces.size(), 1u);
  EXPECT_EQ(pieces, from_base64(text_of(told, "audio_file")).value());
}

TEST_F(KServe, ModelsHaveOneVersionAndTellTheirTensors) {
  const auto get = [&](const std::string& path) { return bench_.ask(testing::get_request(path)); };
  const Value metadata = read_json(get("/v2/models/shoal").body());
  EXPECT_EQ(text_of(array_of(metadata, "inputs").at(0), "name"), "text_input");
  EXPECT_EQ(text_of(read_json(get("/v2/models/shoal/versions/1/config").body()), "backend"), "shoal");
  EXPECT_EQ(get("/v2/models/shoal/ready").status, 200);
  EXPECT_EQ(get("/v2/models/shoal/versions/1/ready").status, 200);
  EXPECT_EQ(get("/v2/models/shoal/versions/2").status, 404);
  EXPECT_EQ(get("/v2/models/other/ready").status, 404);
  EXPECT_NE(
      error_of(post("x/infer",
                    R"({"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1],"data":["a"]}]})"),
               404)
          .find("model"),
      std::string::npos);
  EXPECT_EQ(
      post("/versions/1/generate", std::string(R"({"text_input":"A fish.",)") + kParameters + "}}").status,
      200);
  Engine idle(testing::built_in_config());
  testing::RouteBench bench(kserve_routes, idle);
  for (const char* path : {"/v2/health/ready", "/v2/models/shoal/ready"})
    EXPECT_EQ(bench.ask(testing::get_request(path)).status, 503) << path;
  EXPECT_EQ(bench.ask(testing::get_request("/v2/health/live")).status, 200);
}

TEST_F(KServe, WhatIsUnknownIsRefusedByName) {
  const auto names = [&](const Answered& answer, const char* name) {
    EXPECT_NE(error_of(answer).find(name), std::string::npos) << answer.body();
  };
  names(infer(R"(,"sede":1)"), "sede");
  names(infer(R"(,"priority":2)"), "priority");
  names(infer(R"(,"sequence_id":5)"), "sequence");
  names(infer(R"(,"speed":9)"), "parameters.speed");
  names(infer(R"(,"voice":"nobody")"), "nobody");
  names(infer("", R"(,"outputs":[{"name":"sound"}])"), "sound");
  names(infer("", R"(,"output":[])"), "output");
  names(post("/generate", R"({"text_input":"a","seed":1,"parameters":{"seed":2}})"), "seed");
  names(post("/generate", R"({"text_input":"a","parameters":{"binary_data_output":true}})"),
        "binary_data_output");
  names(post("/generate", R"({"prompt":"a"})"), "prompt");
  names(post("/generate", "{}"), "text_input");
  const auto input = [&](const std::string& name, const std::string& data, int count) {
    return post("/infer", R"({"inputs":[{"name":")" + name + R"(","datatype":"BYTES","shape":[)" +
                              std::to_string(count) + R"(],"data":)" + data + "}]}");
  };
  names(input("text", R"(["a"])", 1), "text_input");
  names(input("text_input", R"(["a","b"])", 2), "a request for each");
  names(input("reference_audio", R"(["AAAA"])", 1), "text_input");
  Request other = json_request("/v2/models/shoal/infer", "{}");
  other.headers = {{"Content-Type", "text/csv"}};
  error_of(bench_.ask(std::move(other)), 415);
}

// Random requests in JSON and as bytes: each is answered, and equal ones equally.
TEST_F(KServe, RandomCallsSayTheSameAsBytesAndAsJson) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 12; ++i) {
    const std::string text =
        std::vector<std::string>{"Hi.", "A fish \"here\".", "\xc3\x84hm, no."}[random() % 3];
    const std::string parameters =
        concat(R"("parameters":{"max_new_tokens":12,"seed":)", random() % 1000, R"(,"speed":)",
               random() % 2 ? "1" : "1.5", R"(,"temperature":)", random() % 2 ? "0" : "0.9", "}");
    const std::string json = R"({"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1,1],"data":[)" +
                             write_json({text}) + "]}]," + parameters + "}";
    std::string element;
    append_bytes_element(element, text);
    const std::string header = concat(
        R"({"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":)",
        element.size(), "}}],", parameters, "}");
    Request bytes = json_request("/v2/models/shoal/infer", header + element);
    bytes.headers = {{"Content-Type", "application/octet-stream"},
                     {"Inference-Header-Content-Length", std::to_string(header.size())}};
    const Answered one = post("/infer", json), other = bench_.ask(std::move(bytes));
    ASSERT_EQ(one.status, 200) << one.body().substr(0, 300);
    EXPECT_EQ(one.body(), other.body());
  }
}

// A body that is cut or changed anywhere is refused or spoken, and never our fault.
TEST_F(KServe, HostileBodiesAreTheCallersFault) {
  const std::string json =
      std::string(
          R"({"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":6}}],)") +
      kParameters + "}}";
  std::string body = json;
  append_bytes_element(body, "A.");
  std::mt19937_64 random(11);
  for (int i = 0; i < 400; ++i) {
    std::string bad = body.substr(0, random() % 4 ? body.size() : random() % body.size());
    for (uint64_t n = random() % 4; n > 0 && !bad.empty(); --n)
      bad[random() % bad.size()] = static_cast<char>(random());
    Request request = json_request("/v2/models/shoal/infer", bad);
    request.headers.add("Inference-Header-Content-Length",
                        std::to_string(random() % 3 ? json.size() : random() % 400));
    const Answered answer = bench_.ask(std::move(request));
    EXPECT_TRUE(answer.status == 200 || (answer.status >= 400 && answer.status < 500))
        << answer.status << bad;
  }
}

}  // namespace
}  // namespace shoal::server
