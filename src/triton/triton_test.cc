// The backend under a stand-in for Triton: what it answers, against libshoal's own sound.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "shoal/shoal.h"
#include "triton/triton_host_testing.h"

namespace shoal::triton::testing {
namespace {

std::string config_with(bool decoupled, const std::string& more = "") {
  return R"({"name":"voice","backend":"shoal","model_transaction_policy":{"decoupled":)" +
         std::string(decoupled ? "true" : "false") + R"(},"parameters":{"model":{"string_value":")" +
         SHOAL_SOURCE_DIR +
         R"(/voice"},"device":{"string_value":"cpu"},"threads":{"string_value":"2"},"warm_up":{"string_value":"false"},)" +
         R"("cache_dir":{"string_value":"none"},"request_timeout_s":{"string_value":"0"}})" + more + "}";
}

HostedRequest asked(const std::string& text, int64_t seed) {
  return {.inputs = {{"text_input", text_tensor(text)}},
          .parameters = {
              {"seed", seed}, {"max_new_tokens", int64_t{20}}, {"temperature", 0.75}, {"normalize", true}}};
}

void expect_nothing_lives() {
  for (int i = 0; i < 200 && living_objects() != 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(living_objects(), 0);
}

class Triton : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = new HostedModel(config_with(true)); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  void SetUp() override { ASSERT_EQ(model_->error(), ""); }
  void TearDown() override { expect_nothing_lives(); }
  static HostedModel* model_;
};
HostedModel* Triton::model_ = nullptr;

// What libshoal says of it without Triton.
std::string direct_sound(const std::string& text, int64_t seed) {
  shoal_config* config = nullptr;
  shoal_engine* engine = nullptr;
  shoal_request* request = nullptr;
  shoal_speech* speech = nullptr;
  shoal_buffer* samples = nullptr;
  shoal_config_new(&config, nullptr);
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"model", SHOAL_SOURCE_DIR "/voice"},
                                                                  {"device", "cpu"},
                                                                  {"threads", "2"},
                                                                  {"warm_up", "false"},
                                                                  {"cache_dir", "none"},
                                                                  {"request_timeout_s", "0"}})
    EXPECT_EQ(shoal_config_set(config, name, value, nullptr), SHOAL_OK) << name;
  EXPECT_EQ(shoal_engine_new(config, &engine, nullptr), SHOAL_OK);
  EXPECT_EQ(shoal_engine_start(engine, nullptr), SHOAL_OK);
  shoal_request_new(&request, nullptr);
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, std::string>>{{"text", text},
                                                                  {"seed", std::to_string(seed)},
                                                                  {"max_new_tokens", "20"},
                                                                  {"temperature", "0.75"},
                                                                  {"normalise", "true"},
                                                                  {"special_tokens", "false"}})
    EXPECT_EQ(shoal_request_set(request, name, value.c_str(), nullptr), SHOAL_OK) << name;
  EXPECT_EQ(shoal_engine_submit(engine, request, nullptr, &speech, nullptr), SHOAL_OK);
  EXPECT_EQ(shoal_speech_read_all(speech, &samples, nullptr), SHOAL_OK);
  std::string bytes(static_cast<const char*>(shoal_buffer_data(samples)), shoal_buffer_size(samples));
  shoal_buffer_free(samples);
  shoal_speech_free(speech);
  shoal_request_free(request);
  shoal_engine_free(engine);
  shoal_config_free(config);
  return bytes;
}

constexpr const char* kText = "Good morning. A second sentence, and a third one follows. Here it is.";

TEST_F(Triton, ADecoupledModelStreamsTheSoundOfTheEngine) {
  const auto outcome = model_->execute({asked(kText, 5)}).front();
  outcome->wait_for_end();
  EXPECT_EQ(outcome->error, "");
  EXPECT_EQ(outcome->finals, 1);
  EXPECT_GT(outcome->responses.size(), 2u);
  for (ResponseData& response : outcome->responses) {
    const TensorData& audio = response.outputs["audio"];
    EXPECT_EQ(audio.type, TRITONSERVER_TYPE_FP32);
    ASSERT_EQ(audio.shape.size(), 1u);
    EXPECT_EQ(static_cast<size_t>(audio.shape[0]) * 4, audio.bytes.size());
    int32_t hz = 0;
    ASSERT_EQ(response.outputs["sample_rate"].bytes.size(), sizeof hz);
    std::memcpy(&hz, response.outputs["sample_rate"].bytes.data(), sizeof hz);
    EXPECT_GE(hz, 16000);
  }
  EXPECT_EQ(outcome->all_bytes("audio"), direct_sound(kText, 5));
}

TEST_F(Triton, OtherwiseOneResponseHasItAllWithTheBatchsDimension) {
  HostedModel whole(config_with(
      false,
      R"(,"max_batch_size":8,"dynamic_batching":{"preferred_batch_size":[8],"max_queue_delay_microseconds":"50000"})"));
  ASSERT_EQ(whole.error(), "");
  EXPECT_NE(logged().find("dynamic_batching"), std::string::npos);
  HostedRequest request = asked(kText, 5);
  request.inputs["text_input"].shape = {1, 1};
  request.outputs = {"audio", "audio_file"};
  const auto outcome = whole.execute({request}).front();
  outcome->wait_for_end();
  ASSERT_EQ(outcome->responses.size(), 1u) << outcome->error;
  const TensorData& audio = outcome->responses[0].outputs["audio"];
  EXPECT_EQ(audio.shape, (std::vector<int64_t>{1, static_cast<int64_t>(audio.bytes.size() / 4)}));
  const std::string file = outcome->all_bytes("audio_file");
  EXPECT_EQ(file.substr(4, 4), "RIFF");
  EXPECT_EQ(file.size(), 4 + 44 + audio.bytes.size() / 2);
  const auto streamed = model_->execute({asked(kText, 5)}).front();
  streamed->wait_for_end();
  EXPECT_EQ(streamed->all_bytes("audio"), audio.bytes);
}

TEST_F(Triton, ManyInFlightEachGetTheirOwn) {
  std::vector<HostedRequest> requests;
  for (int64_t i = 0; i < 8; ++i) requests.push_back(asked(i % 2 ? "One." : "Another one.", i / 4));
  auto outcomes = model_->execute(requests);
  for (const auto& more : model_->execute(requests)) outcomes.push_back(more);
  for (const auto& outcome : outcomes) outcome->wait_for_end();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i]->error, "");
    const size_t same = i % 8 < 4 ? i % 2 : 4 + i % 2;
    EXPECT_EQ(outcomes[i]->all_bytes("audio"), outcomes[same]->all_bytes("audio")) << i;
  }
  EXPECT_NE(outcomes[0]->all_bytes("audio"), outcomes[1]->all_bytes("audio"));
  EXPECT_NE(outcomes[0]->all_bytes("audio"), outcomes[4]->all_bytes("audio"));
}

HostedRequest long_one() {
  HostedRequest request = asked("", 1);
  std::string text;
  for (int i = 0; i < 60; ++i) text += "A long text goes on and on. ";
  request.inputs["text_input"] = text_tensor(text);
  return request;
}

TEST_F(Triton, ACancelledRequestEndsSoonAndOnce) {
  const auto outcome = model_->execute({long_one()}).front();
  outcome->wait_for_responses(1);
  outcome->cancelled = true;
  outcome->wait_for_end();
  EXPECT_EQ(outcome->error.substr(0, 2), "7:") << outcome->error;
  EXPECT_EQ(outcome->finals, 1);
  EXPECT_LT(outcome->all_bytes("audio").size(), 4u * 44100 * 60);
}

TEST_F(Triton, AModelThatIsUnloadedEndsWhatRuns) {
  HostedModel model(config_with(true));
  const auto outcomes = model.execute({long_one(), long_one()});
  outcomes[0]->wait_for_responses(1);
  model.finalize();
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome->finals, 1);
}

TEST_F(Triton, FilesComeInPieces) {
  HostedRequest request = asked(kText, 5);
  request.outputs = {"audio_file"};
  request.parameters["response_format"] = std::string("flac");
  const auto outcome = model_->execute({request}).front();
  outcome->wait_for_end();
  ASSERT_GT(outcome->responses.size(), 1u) << outcome->error;
  EXPECT_EQ(outcome->all_bytes("audio_file").substr(4, 4), "fLaC");
}

TEST_F(Triton, WhatIsWrongIsRefusedByNameAndTheRequestReleased) {
  const auto error_of = [&](HostedRequest request) {
    const auto outcome = model_->execute({std::move(request)}).front();
    outcome->wait_for_end();
    EXPECT_EQ(outcome->responses.size(), 0u);
    return outcome->error;
  };
  const auto with = [](const std::string& name, Parameter value) {
    HostedRequest request = asked("A.", 1);
    request.parameters[name] = std::move(value);
    return request;
  };
  const auto with_input = [](const std::string& name, TensorData data) {
    HostedRequest request = asked("A.", 1);
    request.inputs[name] = std::move(data);
    return request;
  };
  const auto names = [](const std::string& error, const char* name) {
    EXPECT_NE(error.find(name), std::string::npos) << error;
  };
  names(error_of(with("sede", int64_t{1})), "sede");
  names(error_of(with("seed", std::string("x"))), "seed");
  names(error_of(with("speed", 99.0)), "speed");
  names(error_of(with("voice", std::string("nobody"))), "nobody");
  HostedRequest bad_format = with("response_format", std::string("mp5"));
  bad_format.outputs = {"audio_file"};
  names(error_of(bad_format), "mp5");
  names(error_of(with_input("text", text_tensor("a"))), "text");
  names(error_of(with_input("reference_audio", text_tensor("a"))), "reference_text");
  names(error_of(with_input("text_input", {TRITONSERVER_TYPE_FP32, {1}, "abcd"})), "BYTES");
  names(error_of(with_input("text_input", {TRITONSERVER_TYPE_BYTES, {2}, text_tensor("a").bytes})),
        "text_input");
  names(error_of(with_input("text_input", {TRITONSERVER_TYPE_BYTES, {1}, "\xff\xff\xff\xff"})), "text_input");
  names(error_of(with_input("text_input", {TRITONSERVER_TYPE_BYTES, {-1, 4}, ""})), "text_input");
  names(error_of(with_input("text_input", text_tensor(std::string("a\0b", 3)))), "NUL");
  HostedRequest nothing = asked("A.", 1);
  nothing.inputs.clear();
  names(error_of(nothing), "text_input");
  HostedRequest other = asked("A.", 1);
  other.outputs = {"sound"};
  names(error_of(other), "sound");
}

TEST_F(Triton, ConfigurationsAreUnderstoodOrRefusedByField) {
  const auto error_of = [](const std::string& config) { return HostedModel(config).error(); };
  const std::pair<std::string, const char*> wrong[] = {
      {"", ""},
      {"[]", "object"},
      {"{", ""},
      {R"({"max_batch_size":"x"})", "max_batch_size"},
      {R"({"sequence_batching":{}})", "sequence_batching"},
      {R"({"parameters":{"devise":{"string_value":"cpu"}}})", "devise"},
      {R"({"parameters":{"device":"cpu"}})", "string_value"},
      {R"({"parameters":[]})", "parameters"},
      {R"({"parameters":{"model":{"string_value":"/nonexistent/model"}}})", "/nonexistent/model"},
      {R"({"input":[{"name":"TEXT","data_type":"TYPE_STRING"}]})", "TEXT"},
      {R"({"input":{}})", "input"},
      {R"({"output":[{"name":"audio","data_type":"TYPE_INT8"}]})", "TYPE_FP32"},
      {R"({"instance_group":[{"kind":"KIND_GPU","gpus":[0,1]}]})", "one GPU"},
      {R"({"instance_group":[{"kind":"KIND_GPU","gpus":["a"]}]})", "gpus"}};
  for (const auto& [config, part] : wrong) {
    const std::string error = error_of(config);
    EXPECT_NE(error, "") << config;
    EXPECT_NE(error.find(part), std::string::npos) << config << ": " << error;
  }
  // Anything at all: never a crash, and nothing is left behind. Few are accepted, for the device is one that
  // no machine has.
  std::string base = config_with(true, R"(,"instance_group":[{"kind":"KIND_CPU"}],"max_batch_size":4)");
  base.replace(base.find("\"cpu\""), 5, "\"cuda:99\"");
  std::mt19937_64 random(3);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string config = base.substr(0, random() % 3 ? base.size() : random() % base.size());
    for (uint64_t n = 1 + random() % 6; n > 0 && !config.empty(); --n)
      config[random() % config.size()] = static_cast<char>(random() % 128);
    refused += error_of(config).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 150);
}

TEST(TritonLibrary, ShowsOnlyWhatTritonCalls) {
  FILE* symbols = popen("nm -D --defined-only '" SHOAL_TRITON_BACKEND "' 2>&1", "r");
  ASSERT_TRUE(symbols);
  std::array<char, 512> line{};
  int seen = 0;
  while (fgets(line.data(), line.size(), symbols)) {
    EXPECT_NE(std::string(line.data()).find(" T TRITONBACKEND_"), std::string::npos) << line.data();
    ++seen;
  }
  pclose(symbols);
  EXPECT_EQ(seen, 4);
}

}  // namespace
}  // namespace shoal::triton::testing
