// Shared by the tests of the Kokoro engine: a folder in the official layout, and requests for it.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "base/error_testing.h"
#include "base/temporary_folder_testing.h"
#include "models/kokoro/fixtures_testing.h"
#include "models/kokoro/voice_testing.h"
#include "ops/device_testing.h"
#include "runtime/engine/engine_testing.h"
#include "shoal/engine.h"

namespace shoal::runtime::testing {

using shoal::error_of;

// The tiny model of the tree with random voices, and a dictionary, so that a few words need no espeak-ng.
class KokoroFolder {
 public:
  KokoroFolder() {
    for (const char* name : {"config.json", "kokoro-v1_0.pth"})
      std::filesystem::create_symlink(kokoro::kFixture + "/" + name, folder_.path(name));
    folder_.write("voices/af_one.bin", kokoro::raw_voice(kokoro::VoicePack::random(1)));
    folder_.write("voices/bm_two.bin", kokoro::raw_voice(kokoro::VoicePack::random(2)));
    folder_.write("voices/jf_three.bin", kokoro::raw_voice(kokoro::VoicePack::random(3)));
    folder_.write("voices/nobody.bin", kokoro::raw_voice(kokoro::VoicePack::random(4)));
    folder_.write(
        "words/us_gold.json",
        R"({"hello": "həlˈO", "there": "ðˈɛɹ", "the": "ði", "moon": "mˈun", "is": "ɪz", "cold": "kˈOld",
                      "fish": "fˈɪʃ", "swim": "swˈɪm", "under": "ˈʌndəɹ", "now": "nˈW", "and": "ænd"})");
  }
  EngineConfig config() const {
    EngineConfig config;
    config.model = folder_.path();
    config.dictionaries_dir = folder_.path("words");
    config.phonemizer = "/nonexistent";
    config.device = ops::test_device_name();
    config.precision = Precision::float32;
    config.threads = 2;
    config.warm_up = false;
    config.request_timeout_s = 0;  // a sanitizer on a busy machine takes its time
    config.max_queue = 1000;
    config.max_batch_frames = 100'000;
    return config;
  }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  const TemporaryFolder folder_;
};

inline SpeechRequest phonemes_request(std::string phonemes, uint64_t seed = 3) {
  SpeechRequest request;
  request.phonemes = std::move(phonemes);
  request.voice = "af_one";
  request.seed = seed;
  return request;
}

inline SpeechRequest text_request(std::string text) {
  SpeechRequest request;
  request.text = std::move(text);
  request.voice = "af_one";
  request.seed = 3;
  return request;
}

inline std::string random_phonemes(std::mt19937_64& random, int words) {
  static constexpr const char* kWords[] = {"həlˈO", "wˈɜɹld", "fˈɪʃ", "swˈɪm", "ðə", "mˈun", "kˈOld", "æ"};
  static constexpr const char* kMarks[] = {" ", " ", " ", ", ", ". ", "! ", "— "};
  std::string text;
  for (int i = 0; i < words; ++i)
    text += std::string(kWords[between(random, 0, 7)]) + kMarks[between(random, 0, 6)];
  return text + "ˈɛnd.";
}

// One to three lines, of very different lengths.
inline SpeechRequest random_kokoro_request(std::mt19937_64& random) {
  SpeechRequest request = phonemes_request("", random());
  for (int lines = between(random, 1, 2); lines > 0; --lines)
    request.phonemes +=
        random_phonemes(random, between(random, 0, 3) == 0 ? 12 : between(random, 1, 4)) + "\n";
  static constexpr const char* kVoices[] = {"af_one", "bm_two", "af_one(2)+bm_two", "jf_three"};
  request.voice = kVoices[between(random, 0, 3)];
  request.speed = 0.5 * between(random, 2, 8);
  request.delivery = between(random, 0, 1) ? Delivery::whole : Delivery::streaming;
  request.client = std::string(1, static_cast<char>('a' + between(random, 0, 3)));
  return request;
}

}  // namespace shoal::runtime::testing
