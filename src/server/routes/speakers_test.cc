// Several speakers in one text, through the doors: OpenAI's, Fish Audio's, batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "server/routes/speech_testing.h"
#include "text/s2_folder_testing.h"

namespace shoal::server {
namespace {

using testing::Answered;
using testing::at;
using testing::body_value;
using testing::decoded;
using ::testing::HasSubstr;
using testing::json_request;
using testing::RouteBench;
using testing::text_at;

const std::string kTalk = "<|speaker:0|>[calm] Hello.<|speaker:1|>Hi.";

// An S2 model with the voices "clara" and "hugo".
class S2Engine {
 public:
  S2Engine() {
    engine.start();
    engine.voices().add("clara", low, "low words");
    engine.voices().add("hugo", high, "high words");
  }
  const std::string low = testing::noise_wav(0.4, 1), high = testing::noise_wav(0.5, 2);
  const text::S2Folder model;
  const TemporaryFolder voices;
  Engine engine{[this] {
    EngineConfig config = testing::built_in_config();
    config.model = model.path();
    config.references_dir = voices.path();
    return config;
  }()};
};

S2Engine& s2() {
  static S2Engine made;
  return made;
}

// Every speaking route, on S2 and on the built-in voice.
class Doors : public ::testing::Test {
 protected:
  static std::vector<Route> all_routes(const ServerConfig& config) {
    std::vector<Route> routes = openai_routes(config);
    for (auto more : {fish_routes, batch_routes})
      for (Route& route : more(config)) routes.push_back(std::move(route));
    return routes;
  }
  Answered speech(const std::string& fields, const std::string& model = "s2",
                  const std::string& text = kTalk) {
    return bench.ask(json_request("/v1/audio/speech", R"({"seed":7,"response_format":"wav","input":")" +
                                                          text + R"(","model":")" + model + '"' +
                                                          testing::with_length(fields)));
  }
  Answered fish(const std::string& fields, const std::string& model = "s2") {
    return bench.ask(json_request("/v1/tts", R"({"seed":7,"text":")" + kTalk + R"(","model":")" + model +
                                                 '"' + testing::with_length(fields)));
  }
  // By the engine itself, 16-bit PCM.
  static std::string wanted(std::vector<SpeakerVoice> voices) {
    SpeechRequest request = testing::spoken(kTalk);
    request.voices = std::move(voices);
    return testing::pcm_of(testing::sound_of(s2().engine, request));
  }

  RouteBench bench{all_routes,
                   std::vector<ServedModel>{{"s2", &s2().engine}, {"s1", &testing::shared_engine()}}};
};

TEST_F(Doors, OpenAiTakesAVoiceForEachSpeaker) {
  const Answered heard = speech(R"("voices":{"1":"hugo","0":"clara"})");
  EXPECT_EQ(heard.status, 200) << heard.body();
  EXPECT_EQ(decoded(heard.body()), wanted({{0, "clara"}, {1, "hugo"}}));
  EXPECT_NE(decoded(heard.body()), wanted({{0, "hugo"}, {1, "clara"}}));
  // Clients that must name a voice: OpenAI's names give way.
  EXPECT_EQ(speech(R"("voice":"nova","voices":{"0":"clara","1":"hugo"})").body(), heard.body());
  EXPECT_EQ(speech(R"("voices":{"0":"clara","1":"default"})").status, 200);
}

TEST_F(Doors, FishTakesVoicesAndClipsInOrder) {
  const std::string want = decoded(fish(R"("reference_id":["clara","hugo"])").body());
  SpeechRequest request = testing::spoken_for_fish(kTalk);
  request.voices = {{0, "clara"}, {1, "hugo"}};
  EXPECT_EQ(want, testing::pcm_of(testing::sound_of(s2().engine, request)));
  const auto clip = [](const std::string& audio, const std::string& words, const std::string& more = "") {
    return R"({"audio":")" + to_base64(audio) + R"(","text":")" + words + '"' + more + "}";
  };
  const std::string low = clip(s2().low, "low words"), high = clip(s2().high, "high words");
  EXPECT_EQ(decoded(fish("\"references\":[" + low + "," + high + "]").body()), want);
  EXPECT_EQ(decoded(fish("\"references\":[[" + low + "],[" + high + "]]").body()), want);
  const std::string turned = "\"references\":[" + clip(s2().high, "high words", R"(,"speaker":1)") + "," +
                             clip(s2().low, "low words", R"(,"speaker":0)") + "]";
  EXPECT_EQ(fish(turned).status, 200);
  EXPECT_EQ(fish(R"("reference_id":["clara"])", "s1").status, 200);  // one voice: for every model
}

TEST_F(Doors, ABatchHasVoicesForEachItem) {
  const Answered answered = bench.ask(
      json_request("/v1/tts/batch", R"({"model":"s2","max_new_tokens":20,"items":[{"seed":7,"text":")" +
                                        kTalk + R"(","voices":{"0":"clara","1":"hugo"}},{"text":")" + kTalk +
                                        R"(","voices":{"0":"clara"}}]})"));
  EXPECT_EQ(answered.status, 200);
  EXPECT_THAT(answered.body(), HasSubstr("got none for <|speaker:1|>"));
}

TEST_F(Doors, BadVoicesAreRefusedByName) {
  const auto refused = [&](const Answered& answered, const char* what) {
    EXPECT_GE(answered.status, 400);
    EXPECT_LT(answered.status, 500);
    EXPECT_THAT(answered.body(), HasSubstr(what));
  };
  refused(speech(R"("voices":{"0":"clara"})"), "got none for <|speaker:1|>");
  refused(speech(R"("voices":{"zero":"clara"})"), "voices.zero");
  refused(speech(R"("voices":{"0":5})"), "voices.0");
  refused(speech(R"("voices":["clara"])"), "voices: expected");
  refused(speech(R"("voices":{"0":"clara","1":"nobody"})"), "nobody");
  refused(speech(R"("voice":"clara","voices":{"0":"clara","1":"hugo"})"), "voices: give voices by speaker");
  refused(speech(R"("voicez":{"0":"clara"})"), "voicez");
  refused(speech(R"("voices":{"0":"anna","1":"anna"})", "s1"),
          "voices: this model speaks a text in one voice");
  refused(fish(R"("reference_id":["anna","anna"])", "s1"), "voices: this model speaks a text in one voice");
  std::string thousand = "\"voices\":{\"0\":\"clara\"";
  for (int i = 1; i < 1000; ++i) thousand += ",\"" + std::to_string(i) + "\":\"clara\"";
  refused(speech(thousand + "}"), "voices: expected at most 16 speakers, found 1000");
  std::string many = "\"reference_id\":[\"clara\"";
  for (int i = 1; i < 1000; ++i) many += ",\"clara\"";
  refused(fish(many + "]"), "reference_id");
}

TEST_F(Doors, ModelsSayWhatTheyUnderstand) {
  const Value list = body_value(bench.ask(testing::get_request("/v1/models")));
  const Value data = at(list, {"data"});
  const auto& models = *data.as<Value::Array>();
  EXPECT_EQ(at(models[0], {"understands", "speakers"}), Value{true});
  EXPECT_EQ(text_at(models[0], {"understands", "tags"}), "brackets");
  EXPECT_EQ(at(models[0], {"understands", "phonemes"}), Value{false});
  EXPECT_EQ(at(models[1], {"understands", "speakers"}), Value{false});
  EXPECT_EQ(text_at(models[1], {"understands", "tags"}), "parentheses");
}

}  // namespace
}  // namespace shoal::server
