// Models that speak phonemes: words with their times, styles of voices.
#include <cmath>
#include <filesystem>
#include <gmock/gmock.h>

#include "base/temporary_folder_testing.h"
#include "capi/capi_testing.h"

namespace shoal::capi {
namespace {

using namespace testing;

constexpr size_t kStyles = 510 * 256;

// The tiny Kokoro model with a voice of its own, and a dictionary instead of espeak-ng.
class PhonemesEngine {
 public:
  PhonemesEngine() {
    const std::string model = std::string(SHOAL_SOURCE_DIR) + "/tests/data/kokoro/set_a";
    for (const char* name : {"config.json", "kokoro-v1_0.pth"})
      std::filesystem::create_symlink(model + "/" + name, folder_.path(name));
    for (size_t i = 0; i < kStyles; ++i) styles_.push_back(0.3f * std::sin(static_cast<float>(i)));
    folder_.write("voices/af_one.bin",
                  {reinterpret_cast<const char*>(styles_.data()), styles_.size() * sizeof(float)});
    folder_.write("words/us_gold.json", R"({"a": "ɐ", "fish": "fˈɪʃ", "swims": "swˈɪmz"})");
    const Config config = tiny_config();
    shoal_config_set(config.get(), "model", folder_.path().c_str(), nullptr);
    shoal_config_set(config.get(), "dictionaries_dir", folder_.path("words").c_str(), nullptr);
    shoal_config_set(config.get(), "phonemizer", "/nonexistent", nullptr);
    engine_ = made<CEngine>(shoal_engine_new, config.get());
    shoal_error error = SHOAL_ERROR_INIT;
    EXPECT_EQ(shoal_engine_start(engine_.get(), &error), SHOAL_OK) << error.message;
  }
  shoal_engine* get() const { return engine_.get(); }
  const CEngine& engine() const { return engine_; }
  const std::vector<float>& styles() const { return styles_; }

 private:
  const TemporaryFolder folder_;
  std::vector<float> styles_;
  CEngine engine_;
};

TEST(CPhonemes, WordsComeWithTheirTimes) {
  const PhonemesEngine engine;
  const Request request = made<Request>(shoal_request_new);
  shoal_request_set(request.get(), "text", "A fish swims.", nullptr);
  shoal_request_set(request.get(), "voice", "af_one", nullptr);
  const CSpeech speech = submitted(engine.engine(), request);
  EXPECT_FALSE(all_samples(speech).empty());
  const Json all = json_of(made<Buffer>(shoal_speech_words, speech.get(), size_t{0}));
  std::vector<std::string> words;
  double at = 0;
  for (const Json& word : all.as_array()) {
    words.push_back(word.at("word").as_string());
    EXPECT_GE(word.at("start_s").as_number(), at);
    at = word.at("end_s").as_number();
  }
  EXPECT_THAT(words, ::testing::ElementsAre("A", "fish", "swims", "."));
  const Json rest = json_of(made<Buffer>(shoal_speech_words, speech.get(), size_t{3}));
  EXPECT_EQ(rest.as_array().size(), 1U);
  EXPECT_EQ(shoal_buffer_size(made<Buffer>(shoal_speech_codes, speech.get()).get()), 0U);
}

TEST(CPhonemes, TextsAreReadAndVoicesHaveStyles) {
  const PhonemesEngine engine;
  const Json traits = json_of(made<Buffer>(shoal_engine_traits, engine.get()));
  EXPECT_EQ(traits.at("family").as_string(), "kokoro");
  EXPECT_TRUE(traits.at("phonemes").as_bool());
  EXPECT_TRUE(traits.at("codec").is_null());
  const Json read = json_of(made<Buffer>(shoal_engine_phonemize, engine.get(), "A fish swims.", "en-us", 1));
  const Json& chunk = read.at("chunks").as_array().at(0);
  EXPECT_EQ(chunk.at("phonemes").as_string(), "ɐ fˈɪʃ swˈɪmz.");
  EXPECT_FALSE(chunk.at("ids").as_array().empty());
  EXPECT_EQ(values_of<float>(made<Buffer>(shoal_engine_voice_styles, engine.get(), "af_one")),
            engine.styles());
  shoal_buffer* none = nullptr;
  EXPECT_EQ(shoal_engine_voice_styles(engine.get(), "nobody", &none, nullptr), SHOAL_NOT_FOUND);
  EXPECT_EQ(shoal_engine_encode(engine.get(), "noise", 5, &none, nullptr, nullptr), SHOAL_UNSUPPORTED);
}

}  // namespace
}  // namespace shoal::capi
