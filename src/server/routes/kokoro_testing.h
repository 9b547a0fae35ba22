// What the tests of a Kokoro model behind the routes share: the tiny model of the tree with voices made here.
#pragma once

#include <bit>
#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
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

}  // namespace shoal::server::testing
