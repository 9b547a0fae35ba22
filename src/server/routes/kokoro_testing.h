// Shared by the route tests with a Kokoro model: the tiny model of the tree with generated voices.
#pragma once

#include <bit>
#include <filesystem>
#include <gmock/gmock.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_folder_testing.h"
#include "server/routes/speech_testing.h"

namespace shoal::server::testing {

inline std::string random_voice(uint32_t seed) {
  std::vector<float> values(size_t{510} * 256);
  for (float& value : values) {
    float sum = 0;  // of four: bell-shaped enough
    for (int i = 0; i < 4; ++i) {
      seed = seed * 1664525 + 1013904223;
      sum += static_cast<float>(seed >> 8) / 16777216.0f - 0.5f;
    }
    value = sum * 0.4f;
  }
  return as_string(std::as_bytes(std::span(values)));
}

class KokoroFolder {
 public:
  KokoroFolder() {
    const std::string set = std::string(SHOAL_SOURCE_DIR) + "/tests/data/kokoro/set_a/";
    folder_.write("m/voices/af_one.bin", random_voice(1));
    folder_.write("m/voices/am_adam.bin", random_voice(2));
    folder_.write("m/voices/bm_two.bin", random_voice(3));
    folder_.write("m/voices/jf_three.bin", random_voice(4));
    for (const char* name : {"config.json", "kokoro-v1_0.pth"})
      std::filesystem::create_symlink(set + name, folder_.path(std::string("m/") + name));
    folder_.write("words/us_gold.json",
                  R"({"hello": "həlˈO", "there": "ðˈɛɹ", "the": "ði", "moon": "mˈun", "is": "ɪz",)"
                  R"( "cold": "kˈOld", "fish": "fˈɪʃ", "swim": "swˈɪm", "under": "ˈʌndəɹ"})");
  }
  EngineConfig config() const {
    EngineConfig config = built_in_config();
    config.model = folder_.path("m");
    config.dictionaries_dir = folder_.path("words");
    config.phonemizer = "/nonexistent";
    return config;
  }

 private:
  const TemporaryFolder folder_;
};

// For all tests of a program.
inline Engine& shared_kokoro() {
  static const KokoroFolder folder;
  static Engine engine(folder.config());
  static const bool started = [] {
    engine.start();
    return true;
  }();
  EXPECT_TRUE(started);
  return engine;
}

inline std::vector<Route> speaking_routes(const ServerConfig& config) {
  std::vector<Route> routes;
  for (const auto part : {openai_routes, kokoro_routes, fish_routes, batch_routes, operator_routes})
    for (Route& route : part(config)) routes.push_back(std::move(route));
  return routes;
}

inline Value::Array list_at(const Value& value, std::string_view name) {
  const Value found = at(value, {name});
  const auto* list = found.as<Value::Array>();
  EXPECT_TRUE(list) << name << " is no list";
  return list ? *list : Value::Array();
}

inline double number_at(const Value& value, std::string_view name) { return *at(value, {name}).as<double>(); }

inline SpeechRequest spoken_by(const std::string& voice, const std::string& text) {
  SpeechRequest request;
  request.text = text;
  request.voice = voice;
  request.seed = 7;
  return request;
}

// Only this model, behind all routes that speak.
class KokoroRoutes : public ::testing::Test {
 protected:
  Answered ask(const std::string& path, const std::string& body) {
    return bench.ask(json_request(path, body));
  }
  // `fields` of a request whose sound is bare 16-bit PCM at the model's rate.
  Answered speech(const std::string& fields) {
    return ask("/v1/audio/speech", R"({"input":"Hello there, the moon.","seed":7,"response_format":"pcm")" +
                                       (fields.empty() ? "" : "," + fields) + "}");
  }
  std::string pcm(SpeechRequest request) { return pcm_of(sound_of(kokoro, std::move(request))); }
  void expect_refused(const Answered& answered, int status, std::initializer_list<std::string_view> where,
                      const std::string& what) {
    EXPECT_EQ(answered.status, status) << answered.body().substr(0, 300);
    EXPECT_THAT(text_at(body_value(answered), where), ::testing::HasSubstr(what));
  }
  void expect_openai(const Answered& answered, const std::string& param, int status = 400) {
    expect_refused(answered, status, {"error", "param"}, param);
  }

  Engine& kokoro = shared_kokoro();
  RouteBench bench{speaking_routes, kokoro};
};

}  // namespace shoal::server::testing
